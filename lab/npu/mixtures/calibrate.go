package mixtures

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models"
)

// Calibrating says what is counted. Model, Threads and Context are of Options.
type Calibrating struct {
	reference.Options
	Data   []string // files: see ReadPrompts
	Chunks []int    // sizes in tokens
	Limit  int      // prompts of each file; 0: all
}

// Chunks returns the sizes that the paper measures (NPUMoE §5.1).
func Chunks() []int { return []int{256, 512, 1024} }

// Check reports what cannot be counted.
func (c *Calibrating) Check() error {
	switch {
	case len(c.Data) == 0:
		return errors.New("a data set is missing: --data FILE")
	case c.Limit < 0:
		return fmt.Errorf("--limit: %d is negative", c.Limit)
	}
	_, err := calibration.NewCounter(experts.Shape{Layers: 1, Experts: 1, Chosen: 1, Hidden: 1, Width: 1}, c.Chunks)
	return err
}

// Calibrate computes the prompts of each data set on the CPU and counts what the routers
// choose. progress, which may be nil, is told of every prompt done, of how many.
func Calibrate(ctx context.Context, c Calibrating, progress func(set string, done, of int)) (*calibration.Calibration, error) {
	if err := c.Check(); err != nil {
		return nil, usage.Error{Err: err}
	}
	var w watcher
	c.Backend, c.KVType, c.Routed = "", "f16", w.see
	var cal *calibration.Calibration
	err := reference.With(ctx, &c.Options, func(b *models.Bundle, compute reference.Scorer) error {
		shape, err := ShapeOf(b)
		if err != nil {
			return err
		}
		var sets []calibration.Set
		for _, path := range c.Data {
			prompts, err := ReadPrompts(ctx, path, c.Limit, b)
			if err != nil {
				return err
			}
			if w.counter, err = calibration.NewCounter(shape, c.Chunks); err != nil {
				return err
			}
			name := filepath.Base(path)
			for i, tokens := range prompts {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := errors.Join(compute(tokens, nothing), w.err); err != nil {
					return fmt.Errorf("%s, prompt %d: %w", name, i+1, err)
				}
				if err := w.counter.End(); err != nil {
					return err
				}
				if progress != nil {
					progress(name, i+1, len(prompts))
				}
			}
			sets = append(sets, w.counter.Set(name))
		}
		cal, err = calibration.New(shape, sets)
		return err
	})
	return cal, err
}

// nothing does nothing with logits. They are computed because rows without any skip the last
// layer's mixture.
func nothing(int, []float32) error { return nil }

// ShapeOf returns the shape of a loaded model's mixtures.
func ShapeOf(b *models.Bundle) (experts.Shape, error) {
	c := b.Model.Config()
	if c.Experts == 0 {
		return experts.Shape{}, fmt.Errorf("the model %s has no mixtures of experts", b.Name)
	}
	if c.DenseLayers > 0 {
		return experts.Shape{}, fmt.Errorf("the first %d layers of %s have feed-forwards: plans are of models all of whose layers are mixtures; without one an NPU has all experts", c.DenseLayers, b.Name)
	}
	return experts.Shape{Model: b.Name, Layers: c.Layers, Experts: c.Experts, Chosen: c.ExpertsUsed, Hidden: c.Hidden, Width: c.ExpertFFN}, nil
}

// watcher hands what routers choose to the counter of the data set under way.
type watcher struct {
	counter *calibration.Counter
	err     error
}

func (w *watcher) see(layer int, chosen []int32, weights []float32) {
	for _, x := range weights {
		if x-x != 0 {
			w.err = fmt.Errorf("the router of layer %d makes numbers that are not finite", layer)
			return
		}
	}
	w.counter.Add(layer, chosen)
}
