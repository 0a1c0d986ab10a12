package constrain

import (
	"math"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/text"
)

// allow sets the tokens that a format allows.
func (p *position) allow(mask []uint64) error {
	f, form := p.format, p.form
	if !form.holds {
		for id := range int32(p.vocab) {
			mask[id/64] |= 1 << (id % 64)
		}
		for _, id := range p.ends {
			p.forbid(mask, id)
		}
		return nil
	}
	allowed, err := f.maskAt(form, nil)
	switch {
	case err == errOutsideFormat:
		return err
	case err != nil:
		return &FormatError{err}
	}
	copy(mask, allowed)
	if !form.begun {
		for _, space := range f.space {
			if form.spaced+space.bytes <= mostSpace {
				mask[space.id/64] |= 1 << (space.id % 64)
			}
		}
	}
	state, _, _ := form.get()
	for _, id := range p.ends {
		if p.forbid(mask, id); state.Accepts() {
			mask[id/64] |= 1 << (id % 64)
		}
	}
	if !slices.ContainsFunc(mask, func(w uint64) bool { return w != 0 }) {
		return errStuck
	}
	return nil
}

// constraint holds all that a request forbids the model to say.
type constraint struct {
	vocab   int
	least   int     // tokens before which none of ends may come
	ends    []int32 // tokens that end an answer
	bad     [][]int32
	longest int     // tokens of bad's longest
	allowed []int32 // nil: all tokens
	thought *thoughtLimit
	format  *form
}

// New returns what holds answers to the rules, nil where there are none. ends are tokens that
// end an answer besides the model's own. thinking says that the prompt ends within a thought.
func (r *Rules) New(m Words, ends []int32, thinking bool) sampling.Constraint {
	if r.MinTokens == 0 && len(r.BadWords) == 0 && r.Allowed == nil && r.MaxThinking == 0 && r.Format == nil {
		return nil
	}
	c := &constraint{vocab: m.Vocab, least: r.MinTokens, allowed: r.Allowed, thought: newThoughtLimit(m, r.MaxThinking, thinking)}
	if r.Format != nil {
		switch {
		case thinking && r.FormatThoughts:
			c.format = newForm(r.Format, m, "", m.Tokenizer.Encode(nil, m.Thoughts.Begin, tokenizer.Options{ParseSpecial: true}))
		case thinking:
			c.format = newForm(r.Format, m, m.Thoughts.End, nil)
		default:
			c.format = newForm(r.Format, m, "", nil)
		}
	}
	c.ends = slices.Concat(ends, m.Tokenizer.EOGs())
	for _, word := range r.BadWords {
		for _, spelling := range []string{word, " " + word} { // as it begins a text, and within one
			ids := m.Tokenizer.Encode(nil, spelling, tokenizer.Options{})
			if len(ids) > 0 && !slices.ContainsFunc(c.bad, func(b []int32) bool { return slices.Equal(b, ids) }) {
				c.bad = append(c.bad, ids)
				c.longest = max(c.longest, len(ids))
			}
		}
	}
	return &position{constraint: c, thinking: c.thought.start(), form: c.format.start()}
}

// position is where a completion stands in a constraint. What it keeps does not grow
// with the completion.
type position struct {
	*constraint
	length   int     // tokens of the completion
	tail     []int32 // the last of them, as many as bad words can begin with
	thinking thoughtState
	form     *formState

	mu       sync.Mutex
	prepared sampling.Prepared
	failed   error // of Allow
}

// Err implements sampling.Fallible.
func (p *position) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Next implements sampling.Constraint.
func (p *position) Next(id int32) sampling.Constraint {
	n := &position{constraint: p.constraint, length: p.length + 1, thinking: p.thought.next(p.thinking, id), form: p.format.next(p.form, id)}
	if keep := p.longest - 1; keep > 0 {
		n.tail = append(append(make([]int32, 0, keep), p.tail[max(0, len(p.tail)+1-keep):]...), id)
	}
	return n
}

// closed is the preparation of constraints that need none.
var closed = func() sampling.Prepared {
	c := make(chan struct{})
	close(c)
	return sampling.Prepared{Forced: c, Allowed: c}
}()

// Prepare implements sampling.Preparer.
func (p *position) Prepare() sampling.Prepared {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prepared.Forced == nil {
		if p.prepared = closed; !p.format.known(p.form) {
			p.prepared = p.format.ready(p.form)
		}
	}
	return p.prepared
}

// Forced implements sampling.Preparer.
func (p *position) Forced() (id int32, ok bool) {
	if id, ends := p.thought.ending(p.thinking); ends {
		return id, true
	}
	id, ok = p.format.forced(p.form)
	return id, ok && !slices.ContainsFunc(p.bad, func(word []int32) bool { return p.completes(word, id) })
}

// completes reports whether a token completes a bad word.
func (p *position) completes(word []int32, id int32) bool {
	head := word[:len(word)-1]
	return word[len(head)] == id && len(head) <= len(p.tail) && slices.Equal(p.tail[len(p.tail)-len(head):], head)
}

// Allow implements sampling.Constraint.
func (p *position) Allow(mask []uint64) {
	if id, ends := p.thought.ending(p.thinking); ends {
		mask[id/64] |= 1 << (id % 64)
		return
	}
	if p.format != nil {
		if err := p.allow(mask); err != nil {
			clear(mask) // nothing can be sampled, and the request fails
			if err != errOutsideFormat {
				p.mu.Lock()
				p.failed = err
				p.mu.Unlock()
			}
			return
		}
	} else if p.allowed == nil {
		for w := range mask {
			mask[w] = math.MaxUint64
		}
	}
	for _, id := range p.allowed {
		mask[id/64] |= 1 << (id % 64)
	}
	if p.length < p.least {
		for _, id := range p.ends {
			p.forbid(mask, id)
		}
	}
	for _, word := range p.bad {
		if id := word[len(word)-1]; p.completes(word, id) {
			p.forbid(mask, id)
		}
	}
}

// forbid removes a token from a mask.
func (c *constraint) forbid(mask []uint64, id int32) {
	if int(id) < c.vocab && id >= 0 {
		mask[id/64] &^= 1 << (id % 64)
	}
}

var (
	_ sampling.Preparer = (*position)(nil)
	_ sampling.Fallible = (*position)(nil)
)

// thoughtLimit ends thoughts that are too long, as their model would end them. nil is no
// limit.
type thoughtLimit struct {
	most  int                 // tokens of a thought
	begin []int32             // how answers begin that begin with a thought; empty: all do
	end   text.Matcher[int32] // what ends a thought
}

// thoughtState is a completion's progress through its thought.
type thoughtState struct {
	over    bool // there is none, or it has ended
	begun   int  // tokens of its beginning
	tokens  int  // within it
	matched int  // of its end
}

// newThoughtLimit limits thoughts to most tokens, 0 for no limit, in answers to a prompt;
// within says that it ends in a thought.
func newThoughtLimit(m Words, most int, within bool) *thoughtLimit {
	if most == 0 || !m.Thinks {
		return nil
	}
	marks := tokenizer.Options{ParseSpecial: true}
	l := &thoughtLimit{most: most, end: text.NewMatcher(m.Tokenizer.Encode(nil, m.Thoughts.End, marks))}
	if !within {
		l.begin = m.Tokenizer.Encode(nil, m.Thoughts.Begin, marks)
	}
	return l
}

// start returns the state of an empty completion.
func (l *thoughtLimit) start() thoughtState { return thoughtState{over: l == nil} }

// next returns the state after one more token.
func (l *thoughtLimit) next(t thoughtState, id int32) thoughtState {
	switch {
	case t.over:
	case t.begun < len(l.begin):
		t.over = l.begin[t.begun] != id
		t.begun++
	default:
		t.tokens++
		t.matched = l.end.Next(t.matched, id)
		t.over = t.matched == len(l.end.Pattern)
	}
	return t
}

// ending returns the only token that may come next, where a thought has to end.
func (l *thoughtLimit) ending(t thoughtState) (id int32, ends bool) {
	if t.over || t.begun < len(l.begin) || t.tokens < l.most {
		return 0, false
	}
	return l.end.Pattern[l.end.Within(t.matched, t.tokens-l.most)], true
}
