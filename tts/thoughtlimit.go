package tts

import (
	"slices"

	"github.com/lutra-lm/lutra/models/tokenizer"
)

// thoughtLimit ends thoughts that are too long, as their model would end them.
type thoughtLimit struct {
	most  int     // tokens of a thought; 0: no limit
	begin []int32 // how answers begin that begin with a thought; empty: all do
	end   []int32 // what ends a thought
}

// thoughtLimit is a limit for answers to a prompt; within says that it ends in a
// thought.
func (m *Model) thoughtLimit(most int, within bool) thoughtLimit {
	if most == 0 || !m.Thinks() {
		return thoughtLimit{}
	}
	marks := tokenizer.Options{ParseSpecial: true}
	l := thoughtLimit{most: most, end: m.Tokenizer.Encode(nil, thinkEnd, marks)}
	if !within {
		l.begin = m.Tokenizer.Encode(nil, thinkBegin, marks)
	}
	return l
}

// next is the only token that may come next, where a thought has to end.
func (l *thoughtLimit) next(completion []int32) (id int32, ends bool) {
	if l.most == 0 || len(completion) < l.most+len(l.begin) || !slices.Equal(completion[:len(l.begin)], l.begin) {
		return 0, false
	}
	thought := completion[len(l.begin):]
	for i := len(l.end); i <= len(thought); i++ {
		if slices.Equal(thought[i-len(l.end):i], l.end) {
			return 0, false
		}
	}
	said := 0 // of the end
	for n := min(len(l.end)-1, len(thought)-l.most); n > 0; n-- {
		if slices.Equal(thought[len(thought)-n:], l.end[:n]) {
			said = n
			break
		}
	}
	return l.end[said], true
}
