package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// thousands cuts runs of digits into threes from their right end: 1234567 is 1, 234 and
// 567. A pattern says so by looking ahead to the end of the run at each cut, in quadratic
// time.
type thousands struct {
	digit   func(rune) bool
	bounded bool // only of runs that no letter or other word character follows
	ahead   bool // cuts are before whole threes alone: neither before the rest nor after the run
}

func (s thousands) split(text string, yield func(string)) {
	done := 0 // where what has not been yielded begins
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !s.digit(r) {
			i += n
			continue
		}
		end, count := i, 0
		for end < len(text) {
			if r, n = utf8.DecodeRuneInString(text[end:]); !s.digit(r) {
				break
			}
			end, count = end+n, count+1
		}
		if s.bounded && end < len(text) && word(r) {
			i = end
			continue
		}
		for first := true; count > 0; count, first = count-1, false {
			if cut := count%3 == 0 || first && !s.ahead; cut && i > done {
				yield(text[done:i])
				done = i
			}
			_, n = utf8.DecodeRuneInString(text[i:])
			i += n
		}
		if !s.ahead {
			yield(text[done:i])
			done = i
		}
	}
	if done < len(text) {
		yield(text[done:])
	}
}

// word tells whether r is a character of a word, which patterns call \w.
func word(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc)
}
