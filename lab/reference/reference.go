// Package reference computes a model's logits without an engine, to compare them with
// other programs' and to measure perplexity.
package reference

import (
	"context"
	"fmt"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// Options choose the model and how it computes.
type Options struct {
	Model, Packing, KVType string
	Backend                string         // one of config.Backends; empty: the CPU
	Hexagon                config.Hexagon // of a Hexagon backend; zero: DefaultHexagon
	Exact                  bool           // float32 weights and activations
	Threads                int
	Context                int  // longest sequence; 0: the model's own
	ContextSet             bool // refuse a model with a shorter context of its own; else use that
	Rope                   config.RopeScaling
	Get                    config.Getter

	Loading func(model string, done, total int64)               // as engines.Watcher.Loading; may be nil
	Routed  func(layer int, experts []int32, weights []float32) // models.LoadOptions.Routed; may be nil
	Observe func(of []models.MatrixPart, rows *kernels.Acts)    // models.LoadOptions.Observe; may be nil
}

// chunk is the number of tokens in a forward pass, unless the model has chunks.
const chunk = 128

// blockOf returns the number of tokens in a block of keys and values. Of types with 4 bits, a token reads its own block in
// 8, so they have the blocks of servers. For others it is the order of sums.
func blockOf(t kv.Type) int {
	if t.Keys() == kv.Int4 || t.Values() == kv.Int4 {
		return config.Default().KV.Block
	}
	return chunk
}

// With loads the model, calls f and closes the model.
func With(ctx context.Context, r *Options, f func(b *models.Bundle, score Scorer) error) error {
	mc, err := config.ModelFlag(r.Model)
	if err == nil {
		err = mc.Get(ctx, r.Get)
	}
	if err != nil {
		return err
	}
	mc.Packing, mc.Backend = r.Packing, r.Backend
	if mc.Metadata, err = r.Rope.Metadata(mc.Metadata); err != nil {
		return err
	}
	if r.Exact && r.Backend != config.CPU && r.Backend != "" {
		return usage.Errorf("--exact: the backend %s has no float32; use the CPU", r.Backend)
	}
	kvType, err := kv.ParseType(r.KVType)
	if err != nil {
		return usage.Error{Err: err}
	}
	longest, err := r.contextFor(mc)
	if err != nil {
		return err
	}
	hexagon := r.Hexagon
	if hexagon == (config.Hexagon{}) {
		hexagon = config.DefaultHexagon()
	}
	if hexagon.Plan != "" && (r.Backend == config.CPU || r.Backend == "") {
		return usage.Errorf("--npu-plan: the backend is the CPU; choose another with --backend")
	}
	pool, err := engines.NewPool(r.Threads)
	if err != nil {
		return err
	}
	defer pool.Close()
	opt := models.LoadOptions{Pool: pool, Packing: mc.Packing, Exact: r.Exact, Context: longest, Metadata: mc.Overrides(), Routed: r.Routed, Observe: r.Observe, Interrupt: engines.Until(ctx)}
	if r.Loading != nil {
		opt.Progress = func(done, total int64) { r.Loading(mc.APIName(), done, total) }
	}
	bundle, err := engines.LoadBundle(mc, hexagon, opt)
	if err != nil {
		return err
	}
	defer bundle.Close()
	return f(bundle, func(tokens []int32, row func(t int, logits []float32) error) error {
		if most := bundle.Model.Config().Context; len(tokens) > most {
			return fmt.Errorf("%d tokens are more than the context of %d", len(tokens), most)
		}
		block := blockOf(kvType)
		cache, err := kv.New(bundle.Model.Config().KV(), kv.Options{Type: kvType, BlockLen: block, Blocks: len(tokens)/block + 1, States: 1})
		if err != nil {
			return err
		}
		defer cache.Close()
		return scoreSequence(bundle.Model, cache, tokens, func(t int, logits []float32) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return row(t, logits)
		})
	})
}

// contextFor returns the context to load the model with; 0: its own.
func (r *Options) contextFor(m config.Model) (int, error) {
	if r.Context < 0 {
		return 0, usage.Errorf("--context: %d is negative", r.Context)
	}
	f, err := m.Open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	arch, _ := f.Metadata.String("general.architecture")
	own, ok := f.Metadata.Int(arch + ".context_length")
	switch {
	case !ok || r.Context <= own || r.Rope.Type != "": // loading checks it
		return r.Context, nil
	case r.ContextSet:
		return 0, usage.Errorf("--context: %d is longer than the model's own of %d", r.Context, own)
	}
	return own, nil
}

// Scorer calls row with the logits after each of tokens in turn. Each call starts a
// fresh sequence.
type Scorer func(tokens []int32, row func(t int, logits []float32) error) error

func scoreSequence(m models.Model, cache *kv.Cache, tokens []int32, row func(t int, logits []float32) error) error {
	width, most := m.Config().Outputs, chunk
	if m.Config().Bidirectional {
		most = len(tokens)
	}
	seq := cache.Open(nil)
	defer seq.Release()
	var b models.Batch
	for lo := 0; lo < len(tokens); lo += most {
		part := tokens[lo:min(lo+most, len(tokens))]
		if err := seq.Grow(len(part)); err != nil {
			return err
		}
		b.Reset()
		b.Add(seq, lo, len(part), part...)
		if err := m.Forward(&b, cache); err != nil {
			return err
		}
		for i := range part {
			logits := b.Logits[i*width : (i+1)*width]
			if err := models.CheckFinite(logits); err != nil {
				return fmt.Errorf("token %d: %w", lo+i, err)
			}
			if err := row(lo+i, logits); err != nil {
				return err
			}
		}
	}
	return nil
}
