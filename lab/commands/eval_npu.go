package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models"
)

// defaultSoC is the one that the papers measure.
const defaultSoC = "8gen3"

// errNotModelled says that a model's time on an NPU is not modelled.
var errNotModelled = errors.New("the time on an NPU is not modelled")

// meter models the time of all configured models on an NPU, if that is asked for. Such a
// device has nothing to speculate with: rows are its candidates'.
func (e *evaluation) meter(cfg *config.Config, w *engines.Watcher) (*npu.Meter, error) {
	if e.soc == "" {
		return nil, nil
	}
	chip, err := soc.Named(e.soc)
	if err != nil {
		return nil, err
	}
	meter, err := npu.NewMeter(e.soc)
	if err != nil {
		return nil, err
	}
	e.setup.SoC = chip.Name
	cfg.Engine.Speculation = batcher.SpeculateOff
	shapes := map[string]soc.Model{}
	list := cfg.Models
	for _, v := range cfg.Verifiers {
		if v.IsProbe() {
			continue // a few products beside the model's own
		}
		list = append(list[:len(list):len(list)], v.Model())
	}
	for _, m := range list {
		f, err := m.Open()
		if err != nil {
			return nil, err
		}
		x, err := npu.FromFile(m.APIName(), f)
		f.Close()
		if err == nil && x.Experts > 0 {
			err = fmt.Errorf("%w: the layers of %s are mixtures of experts", errNotModelled, m.APIName())
		}
		if err != nil {
			return nil, fmt.Errorf("--soc: %w", err)
		}
		shapes[m.APIName()] = x
	}
	w.Model = func(name string, m models.Model) models.Model { return meter.Watch(m, shapes[name]) }
	return meter, nil
}

// metered adds the modelled cost of an answer to it. One question is asked at a time.
func metered(solve eval.Solve, meter *npu.Meter) eval.Solve {
	return func(ctx context.Context, p eval.Point, q eval.Question) (eval.Solution, error) {
		meter.Take()
		s, err := solve(ctx, p, q)
		if err != nil {
			return s, err
		}
		c := meter.Take()
		s.Modelled = &eval.Modelled{Seconds: c.Seconds, Joules: c.Joules}
		return s, nil
	}
}
