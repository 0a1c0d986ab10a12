package constrain

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/text"
)

// errOutsideFormat says that tokens were appended that a format does not allow.
var errOutsideFormat = errors.New("tts: the answer has left its format")

// errStuck says that a format has led to where nothing may follow.
var errStuck = errors.New("tts: the format leaves nothing to go on with")

// mostSpace bounds the white space between a thought and a structured answer.
const mostSpace = 4 // bytes

// form is the part of a constraint that a format makes. nil is none.
type form struct {
	*structure.Format
	words Words
	after text.Matcher[byte] // text after which it holds, such as the end of a thought; empty: from the beginning
	space []spacing          // what may come between
	begin *formState
}

// spacing is a token of white space.
type spacing struct {
	id    int32
	bytes int
}

// newForm holds answers to a format, after a text if that is not empty. The
// prompt ends with what has begun of the answer.
func newForm(f *structure.Format, m Words, after string, begun []int32) *form {
	s := &form{Format: f, words: m, after: text.NewMatcher([]byte(after))}
	s.begin = &formState{holds: after == "", begun: after == "", state: f.Start()}
	if after == "" {
		for _, id := range begun {
			s.begin = s.next(s.begin, id)
		}
		return s
	}
	for _, space := range []string{"\n", "\n\n", " "} {
		if ids := m.Tokenizer.Encode(nil, space, tokenizer.Options{Within: true}); len(ids) == 1 && m.Tokenizer.Plain(ids[0]) {
			s.space = append(s.space, spacing{ids[0], len(space)})
		}
	}
	return s
}

// formState is a completion's progress through its format. The state after a token is computed when it is
// needed; until then tokens wait.
type formState struct {
	matched int  // of the text that the format comes after
	holds   bool // that text has come
	spaced  int  // bytes of white space since
	begun   bool // and then other text: the answer

	mu      sync.Mutex
	state   *structure.State // before those that wait; nil: the answer has left its format
	waiting []int32
	err     error // why it could not be found out
}

// start returns the state of an empty completion.
func (s *form) start() *formState {
	if s == nil {
		return nil
	}
	return s.begin
}

// next returns the state after one more token.
func (s *form) next(f *formState, id int32) *formState {
	if s == nil {
		return nil
	}
	if !f.holds {
		n := &formState{matched: f.matched, state: s.begin.state}
		for _, b := range text.Piece(s.words.Tokenizer, id) {
			n.matched = s.after.Next(n.matched, b)
		}
		n.holds = n.matched == len(s.after.Pattern)
		return n
	}
	state, waiting, err := f.get()
	if space := text.Piece(s.words.Tokenizer, id); !f.begun && len(bytes.TrimSpace(space)) == 0 {
		return &formState{holds: true, spaced: f.spaced + len(space), state: state}
	}
	n := &formState{holds: true, begun: true, state: state, waiting: append(slices.Clip(waiting), id), err: err}
	n.tryAdvance()
	return n
}

// get returns what is known.
func (f *formState) get() (state *structure.State, waiting []int32, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.waiting, f.err
}

// advanceWith finds out what tokens that wait lead to, as far as step knows it, and reports
// whether none waits any more.
func (f *formState) advanceWith(step func(*structure.State, int32) (next *structure.State, known bool, err error)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) > 0 && f.state != nil {
		next, known, err := step(f.state, f.waiting[0])
		if !known {
			return false
		}
		f.state, f.waiting, f.err = next, f.waiting[1:], err
	}
	f.waiting = nil
	return true
}

// tryAdvance does what advanceWith does as far as that takes no work.
func (f *formState) tryAdvance() bool {
	return f.advanceWith(func(s *structure.State, id int32) (*structure.State, bool, error) {
		next, known := s.Peek(id)
		return next, known, nil
	})
}

// resolve finds out the state.
func (f *formState) resolve() (*structure.State, error) {
	f.advanceWith(func(s *structure.State, id int32) (*structure.State, bool, error) {
		next, err := s.Next(id)
		return next, true, err
	})
	state, _, err := f.get()
	return state, err
}

// known reports whether forced and allow answer at once.
func (s *form) known(f *formState) bool {
	if s == nil || !f.holds {
		return true
	}
	if !f.tryAdvance() {
		return false
	}
	state, _, _ := f.get()
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

// ready finds out what forced and allow will be asked, alongside whatever goes on.
func (s *form) ready(f *formState) sampling.Prepared {
	forced, allowed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(allowed)
		ok := false
		func() {
			defer close(forced)
			defer func() { _ = recover() }() // whoever asks meets it again
			_, ok = s.forcedAt(f, backgroundPauses)
		}()
		if !ok {
			defer func() { _ = recover() }()
			_, _ = s.maskAt(f, backgroundPauses)
		}
	}()
	return sampling.Prepared{Forced: forced, Allowed: allowed}
}

// backgroundPauses pauses the work of searches that nobody waits for.
func backgroundPauses(work func(rest func())) { withPauses(context.Background(), work) }

// withPauses calls work with what it is to call every few milliseconds. That waits no longer
// than ctx.
func withPauses(ctx context.Context, work func(rest func())) {
	var inside context.Context
	leave := func() {}
	defer func() { leave() }()
	work(func() {
		if inside == nil {
			inside, leave, _ = cpulimit.Formats.Enter(ctx)
			return
		}
		_ = cpulimit.Pause(inside)
	})
}

// forced returns the token that a format leaves no choice but to come next.
func (s *form) forced(f *formState) (id int32, ok bool) { return s.forcedAt(f, nil) }

func (s *form) forcedAt(f *formState, backgroundPauses structure.Rests) (id int32, ok bool) {
	if s == nil || !f.begun { // white space may come first
		return 0, false
	}
	state, err := f.resolve()
	if state == nil || err != nil {
		return 0, false
	}
	return state.Forced(backgroundPauses)
}

func (s *form) maskAt(f *formState, backgroundPauses structure.Rests) (grammar.Mask, error) {
	if !f.holds {
		return nil, nil
	}
	state, err := f.resolve()
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errOutsideFormat
	}
	return state.Mask(backgroundPauses)
}
