package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/weights"
)

// referenceFlags choose the model of commands that look at its logits
// directly, without an engine.
type referenceFlags struct {
	model, packing, kvType string
	exact                  bool
	threads                int
	context                int // longest sequence; 0: the model's own
	set                    *pflag.FlagSet
}

// register adds the flags. context is the longest sequence unless another one
// is asked for, or the model's own if that is shorter; 0: the model's own.
func (r *referenceFlags) register(f *pflag.FlagSet, context int) {
	r.set = f
	f.StringVar(&r.model, "model", config.DefaultModels()[0].Embedded, "GGUF `FILE` or an embedded model's name")
	wordVar(f, &r.packing, "packing", "auto", weights.Packings(), "run-time packing of ternary weights")
	wordVar(f, &r.kvType, "kv-type", "f16", []string{"f16", "int8", "f32"}, "KV cache format")
	f.BoolVar(&r.exact, "exact", false, "float32 weights and activations (slow; the reference path)")
	f.IntVar(&r.threads, "threads", 0, "compute threads (default: one a physical core)")
	f.IntVar(&r.context, "context", context, "longest sequence in `TOKENS`, 0 for the model's own; models whose rope has factors for short and for long contexts choose by it")
}

// chunk is the number of tokens a forward pass takes at once here.
const chunk = 128

// withScorer loads the model and gives f a function that calls row with the
// logits after each of tokens in turn. Each call starts a fresh sequence.
func (r *referenceFlags) withScorer(f func(b *models.Bundle, score scorer) error) error {
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
func (r *referenceFlags) contextFor(m config.Model) (int, error) {
	if r.context < 0 {
		return 0, usage.Errorf("--context: %d is negative", r.context)
	}
	name := m.Path
	if m.Embedded != "" {
		name = m.Embedded
	} else if err := config.CheckModelFile(name); err != nil {
		return 0, err
	}
	f, err := openGGUF(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	arch, _ := f.Metadata.String("general.architecture")
	own, ok := f.Metadata.Int(arch + ".context_length")
	switch {
	case !ok || r.context <= own: // what loading has to say of it is said there
		return r.context, nil
	case r.set.Changed("context"):
		return 0, usage.Errorf("--context: %d is longer than the model's own of %d", r.context, own)
	}
	return own, nil
}

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

// parseTokens reads ids separated by white space or commas, with or without a
// JSON list's brackets.
func parseTokens(text string, vocab int) ([]int32, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) })
	tokens := make([]int32, len(fields))
	for i, f := range fields {
		id, err := strconv.ParseInt(f, 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) {
			return nil, fmt.Errorf("token %d: %q is no id in 0..%d", i, f, vocab-1)
		}
		tokens[i] = int32(id)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("no tokens")
	}
	return tokens, nil
}
