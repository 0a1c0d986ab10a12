package cli

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// referenceOptions choose the model and how it computes.
type referenceOptions struct {
	model, packing, kvType string
	exact                  bool // float32 weights and activations
	threads                int
	context                int  // longest sequence; 0: the model's own
	contextSet             bool // else a shorter context of the model's own counts
}

// chunk is the number of tokens a forward pass takes at once here.
const chunk = 128

// withScorer loads the model for f.
func withScorer(r *referenceOptions, f func(b *models.Bundle, score scorer) error) error {
	mc, err := config.ModelFlag(r.model)
	if err != nil {
		return err
	}
	mc.Packing = r.packing
	kvType, err := kv.ParseType(r.kvType)
	if err != nil {
		return usage.Error{Err: err}
	}
	context, err := r.contextFor(mc)
	if err != nil {
		return err
	}
	pool, err := engines.NewPool(r.threads)
	if err != nil {
		return err
	}
	defer pool.Close()
	bundle, err := engines.LoadBundle(mc, models.LoadOptions{Pool: pool, Packing: mc.Packing, Exact: r.exact, Context: context})
	if err != nil {
		return err
	}
	defer bundle.Close()
	return f(bundle, func(tokens []int32, row func(t int, logits []float32) error) error {
		if most := bundle.Model.Config().Context; len(tokens) > most {
			return fmt.Errorf("%d tokens are more than the context of %d", len(tokens), most)
		}
		cache, err := kv.New(bundle.Model.Config().KV(), kv.Options{Type: kvType, BlockLen: chunk, Blocks: len(tokens)/chunk + 1})
		if err != nil {
			return err
		}
		defer cache.Close()
		return scoreSequence(bundle.Model, cache, tokens, row)
	})
}

// contextFor is the longest sequence that the model is loaded for: what is asked
// for, or as much of the default as it has; 0: its own.
func (r *referenceOptions) contextFor(m config.Model) (int, error) {
	if r.context < 0 {
		return 0, usage.Errorf("--context: %d is negative", r.context)
	}
	f, err := m.Open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	arch, _ := f.Metadata.String("general.architecture")
	own, ok := f.Metadata.Int(arch + ".context_length")
	switch {
	case !ok || r.context <= own: // what loading has to say of it is said there
		return r.context, nil
	case r.contextSet:
		return 0, usage.Errorf("--context: %d is longer than the model's own of %d", r.context, own)
	}
	return own, nil
}

// scorer calls row with the logits after each of tokens in turn. Each call starts a
// fresh sequence.
type scorer func(tokens []int32, row func(t int, logits []float32) error) error

func scoreSequence(m models.Model, cache *kv.Cache, tokens []int32, row func(t int, logits []float32) error) error {
	width := m.Config().Outputs
	seq := cache.Open(nil)
	defer seq.Release()
	var b models.Batch
	for lo := 0; lo < len(tokens); lo += chunk {
		part := tokens[lo:min(lo+chunk, len(tokens))]
		if err := seq.Grow(len(part)); err != nil {
			return err
		}
		b.Reset()
		b.Add(seq, lo, len(part), part...)
		if err := m.Forward(&b, cache); err != nil {
			return err
		}
		for i := range part {
			if err := row(lo+i, b.Logits[i*width:(i+1)*width]); err != nil {
				return err
			}
		}
	}
	return nil
}

// logProbability is the natural logarithm of softmax(logits)[id], in double
// precision.
func logProbability(logits []float32, id int32) float64 {
	top := logits[0]
	for _, x := range logits {
		top = max(top, x)
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - top))
	}
	return float64(logits[id]-top) - math.Log(sum)
}
