// Package embed makes vectors of texts and scores how well documents answer queries,
// with models that write nothing.
package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/tts"
)

// ErrModel says that a model cannot be used so.
var ErrModel = errors.New("embed: the model does not do this")

// TextError says which text of a request is at fault.
type TextError struct {
	Index    int  // of the text, or of the pair that it belongs to
	Document bool // it is a pair's document
	Err      error
}

func (e *TextError) Error() string { return fmt.Sprintf("embed: text %d: %v", e.Index, e.Err) }

// Unwrap returns what is wrong with the text.
func (e *TextError) Unwrap() error { return e.Err }

// Embedder makes vectors of texts. It may be used by many callers at once.
type Embedder struct{ model *tts.Model }

// NewEmbedder makes an embedder of m, which must embed texts.
func NewEmbedder(m *tts.Model) (*Embedder, error) {
	if m.Config.Pooling == models.PoolingNone {
		return nil, fmt.Errorf("%w: %q embeds no texts", ErrModel, m.Name)
	}
	return &Embedder{m}, nil
}

// Width returns the number of elements of a whole vector.
func (e *Embedder) Width() int { return e.model.Projection.Width(e.model.Outputs) }

// Request asks for vectors of texts.
type Request struct {
	Texts      []tts.Prompt // plain text or token ids
	Dimensions int          // elements of a vector: the first ones, scaled to length 1 again; 0: all
	Truncate   bool         // read of a text that is too long as much as is allowed
	Most       int          // tokens of a text, at most as many as the context holds; 0: those
}

// Embed returns a vector of length 1 for each text, and the number of tokens read. Errors: *TextError around tts.ErrEmpty,
// tts.ErrToken or a *tts.ContextError; the engine's, among them models.ErrNotFinite; ctx's own.
func (e *Embedder) Embed(ctx context.Context, r *Request) ([][]float32, int, error) {
	vectors := make([][]float32, len(r.Texts))
	read, err := each(ctx, r.Texts, func(ctx context.Context, i int, open opener) (int, error) {
		ids, err := e.tokens(ctx, &r.Texts[i], r)
		if err != nil {
			return 0, &TextError{Index: i, Err: err}
		}
		seq, err := open(e.model.Engine, ids)
		if err != nil {
			return 0, err
		}
		defer seq.Close()
		vector, err := seq.Embed(ctx)
		if err != nil {
			return 0, err
		}
		if vector = e.model.Projection.Apply(vector); !finite(vector) { // it may overflow
			return 0, models.ErrNotFinite
		}
		if r.Dimensions > 0 {
			vector = vector[:min(r.Dimensions, len(vector))]
		}
		normalise(vector)
		vectors[i] = vector
		return len(ids), nil
	})
	return vectors, read, err
}

// tokens returns what the model reads for a text.
func (e *Embedder) tokens(ctx context.Context, p *tts.Prompt, r *Request) ([]int32, error) {
	limit := e.model.Context
	if r.Most > 0 {
		limit = min(limit, r.Most)
	}
	if !r.Truncate {
		prepared, err := e.model.PrepareRequest(ctx, &tts.Request{Prompt: *p, NoTokens: true})
		if err != nil {
			return nil, err
		}
		if n := len(prepared.Tokens); n > limit {
			return nil, &tts.ContextError{Limit: limit, Prompt: n, Part: tts.PartPrompt}
		}
		return prepared.Tokens, nil
	}
	ids, err := e.model.Encode(ctx, p)
	if err != nil || len(ids) <= limit {
		if err == nil && len(ids) == 0 {
			err = tts.ErrEmpty
		}
		return ids, err
	}
	last := ids[len(ids)-1]
	ids = ids[:limit]
	if eos, ok := e.model.Tokenizer.EOS(); ok && last == eos && p.Tokens == nil { // which the model wants at the end
		ids[limit-1] = eos
	}
	return ids, nil
}

// finite tells whether all numbers are.
func finite(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 })
}

// normalise scales a vector of finite numbers to length 1; one of zeros stays as it is.
func normalise(x []float32) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	if sum == 0 {
		return
	}
	scale := 1 / math.Sqrt(sum)
	for i, v := range x {
		x[i] = float32(float64(v) * scale)
	}
}

const (
	atOnce          = 32 // texts of a request that are in the engine at once
	interactiveMost = 8  // texts of a request that does not give way to others
)

// opener opens a sequence in an engine.
type opener func(e *batcher.Engine, ids []int32) (*batcher.Sequence, error)

// each calls f for all items, several at once, and returns the sum of its results. The
// first error ends all.
func each[T any](ctx context.Context, items []T, f func(ctx context.Context, i int, open opener) (int, error)) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	open := func(e *batcher.Engine, ids []int32) (*batcher.Sequence, error) {
		if len(items) > interactiveMost {
			return e.OpenBackground(ctx, ids)
		}
		return e.Open(ctx, ids)
	}
	var next, sum atomic.Int64
	err := parallel.Each(make([]struct{}, min(atOnce, len(items))), func(int, struct{}) error {
		for i := int(next.Add(1)) - 1; i < len(items) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			n, err := f(ctx, i, open)
			if err != nil {
				cancel(err)
				return err
			}
			sum.Add(int64(n))
		}
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return int(sum.Load()), nil
}
