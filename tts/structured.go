package tts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/structure"
)

// errStrayed says that tokens were appended that a format does not allow.
var errStrayed = errors.New("tts: the answer has left its format")

// errStuck says that a format has led to where nothing may follow.
var errStuck = errors.New("tts: the format leaves nothing to go on with")

// mostSpace bounds the white space between a thought and a structured answer.
const mostSpace = 4 // bytes

// structured is the part of a constraint that a format makes. nil is none.
type structured struct {
	*structure.Format
	model *Model
	after matcher[byte] // text behind which it holds, such as the end of a thought; empty: from the beginning
	space []spacing     // what may come between
	begin *formState
}

// spacing is a token of white space.
type spacing struct {
	id    int32
	bytes int
}

// newStructured holds answers to a format, behind a text if that is not empty. The
// prompt ends with what has begun of the answer.
func newStructured(f *structure.Format, m *Model, after string, begun []int32) *structured {
	s := &structured{Format: f, model: m, after: newMatcher([]byte(after))}
	s.begin = &formState{holds: after == "", begun: after == "", state: f.Start()}
	if after == "" {
		for _, id := range begun {
			s.begin = s.next(s.begin, id)
		}
		return s
	}
	for _, text := range []string{"\n", "\n\n", " "} {
		if ids := m.Tokenizer.Encode(nil, text, tokenizer.Options{Within: true}); len(ids) == 1 && m.Tokenizer.Plain(ids[0]) {
			s.space = append(s.space, spacing{ids[0], len(text)})
		}
	}
	return s
}

// formState is how far a completion has come with its format. What state it has come to
// is found out when it is needed, and then known.
type formState struct {
	matched int  // of the text that the format comes behind
	holds   bool // that text has come
	spaced  int  // bytes of white space since
	begun   bool // and then other text: the answer

	mu     sync.Mutex
	before *formState // and last lead to state, which is not known; nil: it is
	last   int32
	state  *structure.State // nil: the answer has left its format
	err    error
}

// start is the state of an empty completion.
func (s *structured) start() *formState {
	if s == nil {
		return nil
	}
	return s.begin
}

// next is the state behind one more token.
func (s *structured) next(f *formState, id int32) *formState {
	if s == nil {
		return nil
	}
	if !f.holds {
		n := &formState{matched: f.matched, state: s.begin.state}
		for _, b := range s.model.Bytes(id) {
			n.matched = s.after.next(n.matched, b)
		}
		n.holds = n.matched == len(s.after.pattern)
		return n
	}
	if text := s.model.Bytes(id); !f.begun && len(bytes.TrimSpace(text)) == 0 {
		return &formState{holds: true, spaced: f.spaced + len(text), state: f.state}
	}
	n := &formState{holds: true, begun: true, before: f, last: id}
	n.peek()
	return n
}

// found is the state, nil where the answer has left its format, and whether that is
// known; if not, waiting is the state before.
func (f *formState) found() (state *structure.State, waiting *formState, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.before, f.err
}

// peek finds out the state as far as that takes no work, and reports whether it is
// known.
func (f *formState) peek() bool {
	return f.lead((*structure.State).Peek)
}

// lead finds out the state from that before, if this is known, by a function of that
// and the last token. It reports whether the state is known.
func (f *formState) lead(next func(*structure.State, int32) (*structure.State, bool)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before == nil {
		return true
	}
	state, waiting, err := f.before.found()
	if waiting != nil {
		return false
	}
	if state != nil {
		known := false
		if state, known = next(state, f.last); !known {
			return false
		}
	}
	f.state, f.err, f.before = state, err, nil
	return true
}

// resolve finds out the state, from the last one that is known on.
func (f *formState) resolve() (*structure.State, error) {
	var path []*formState
	for at := f; at != nil; {
		path = append(path, at)
		_, at, _ = at.found()
	}
	for _, at := range slices.Backward(path) {
		var failed error
		at.lead(func(p *structure.State, id int32) (next *structure.State, known bool) {
			next, failed = p.Next(id)
			return next, true
		})
		if failed != nil {
			at.fail(failed)
		}
	}
	state, _, err := f.found()
	return state, err
}

func (f *formState) fail(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
}

// known reports whether forced and allow answer at once.
func (s *structured) known(f *formState) bool {
	if s == nil || !f.holds {
		return true
	}
	if !f.peek() {
		return false
	}
	state, _, _ := f.found()
	if state == nil {
		return true
	}
	if f.begun {
		if !state.ForcedKnown() {
			return false
		}
		if _, ok := state.Forced(nil); ok {
			return true
		}
	}
	return state.MaskKnown()
}

// find finds out what forced and allow will be asked, beside whatever goes on.
func (s *structured) find(f *formState) sampling.Prepared {
	forced, allowed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(allowed)
		ok := false
		func() {
			defer close(forced)
			defer func() { _ = recover() }() // whoever asks meets it again
			_, ok = s.forcedAt(f, rests)
		}()
		if !ok {
			defer func() { _ = recover() }()
			_, _ = s.maskAt(f, rests)
		}
	}()
	return sampling.Prepared{Forced: forced, Allowed: allowed}
}

// searching bounds how much of the cores long searches for masks take from the engines.
var searching = cpulimit.New(runtime.GOMAXPROCS(0))

// rests are those of searches that nobody waits for.
func rests(work func(rest func())) { resting(context.Background(), work) }

// resting calls work with what it is to call every few milliseconds. That waits no longer
// than ctx.
func resting(ctx context.Context, work func(rest func())) {
	var inside context.Context
	leave := func() {}
	defer func() { leave() }()
	work(func() {
		if inside == nil {
			inside, leave, _ = searching.Enter(ctx)
			return
		}
		_ = cpulimit.Pause(inside)
	})
}

// forced is the token that a format leaves no choice but to come next.
func (s *structured) forced(f *formState) (id int32, ok bool) { return s.forcedAt(f, nil) }

func (s *structured) forcedAt(f *formState, rests structure.Rests) (id int32, ok bool) {
	if s == nil || !f.begun { // white space may come first
		return 0, false
	}
	state, err := f.resolve()
	if state == nil || err != nil {
		return 0, false
	}
	return state.Forced(rests)
}

func (s *structured) maskAt(f *formState, rests structure.Rests) (grammar.Mask, error) {
	if !f.holds {
		return nil, nil
	}
	state, err := f.resolve()
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errStrayed
	}
	return state.Mask(rests)
}

// allow sets the tokens that a format allows.
func (s *standing) allow(mask []uint64) error {
	f, form := s.format, s.form
	if !form.holds {
		for id := range int32(s.vocab) {
			mask[id/64] |= 1 << (id % 64)
		}
		for _, id := range s.ends {
			s.forbid(mask, id)
		}
		return nil
	}
	allowed, err := f.maskAt(form, nil)
	switch {
	case err == errStrayed:
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
	state, _, _ := form.found()
	for _, id := range s.ends {
		if s.forbid(mask, id); state.Accepts() {
			mask[id/64] |= 1 << (id % 64)
		}
	}
	if !slices.ContainsFunc(mask, func(w uint64) bool { return w != 0 }) {
		return errStuck
	}
	return nil
}

// checkFormat refuses what a format does not go with.
func (r *Request) checkFormat() error {
	if r.Format == nil {
		return nil
	}
	for _, other := range []struct {
		name string
		bad  bool
	}{
		{"min_tokens", r.MinTokens > 0}, {"allowed_token_ids", r.Allowed != nil}, {"ignore_eos", r.Sampling.IgnoreEOS},
		{"continue_final_message", r.Prompt.Ending == EndOpen && r.Prompt.Messages != nil},
	} {
		if other.bad {
			return fmt.Errorf("%w: %s", ErrFormat, other.name)
		}
	}
	return nil
}
