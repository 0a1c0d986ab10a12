package constrain

import (
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/text"
)

// thoughtLimit ends thoughts that are too long, as their model would end them. nil is no
// limit.
type thoughtLimit struct {
	most  int                 // tokens of a thought
	begin []int32             // how answers begin that begin with a thought; empty: all do
	end   text.Matcher[int32] // what ends a thought
}

// thoughtState is how far a completion has come with its thought.
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
	l := &thoughtLimit{most: most, end: text.NewMatcher(m.Tokenizer.Encode(nil, text.ThinkEnd, marks))}
	if !within {
		l.begin = m.Tokenizer.Encode(nil, text.ThinkBegin, marks)
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
