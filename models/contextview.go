package models

import "github.com/lutra-lm/lutra/models/kv"

// Within returns the model, on the same weights, for sequences of a context of its own: at most
// the file's, or that for 0. It is closed with b. ok is false where the context decides what the
// model computes too, as with LongRoPE, or is longer than the file's.
func (b *Bundle) Within(context int) (own *Bundle, ok bool) {
	if b.exec == nil {
		return nil, false
	}
	c, m := b.Model.Config(), b.exec.cfg
	if context == 0 {
		context = m.longest
	}
	if context < 1 || context > m.longest || context != c.Context && m.decisive {
		return nil, false
	}
	view := *b
	c.Context = context
	view.Model = contextView{b.exec, c}
	return &view, true
}

// contextView is a model whose sequences have another bound.
type contextView struct {
	exec *executor
	cfg  Config
}

func (w contextView) Config() Config { return w.cfg }

func (w contextView) Forward(b *Batch, cache *kv.Cache) error {
	return w.exec.forward(b, cache, w.cfg.Context)
}

func (w contextView) TakeBack(b *Batch, keep []int) { w.exec.TakeBack(b, keep) }
