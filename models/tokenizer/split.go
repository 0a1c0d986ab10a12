package tokenizer

import (
	"sync"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// splitter cuts text into pieces that lie end to end and calls yield with each.
type splitter interface {
	split(text string, yield func(piece string))
}

// split cuts text into words.
func (p *preTokenizer) split(text string, yield func(word string)) {
	splitStages(p.stages, text, yield)
}

func splitStages(stages []splitter, text string, yield func(string)) {
	if len(stages) == 1 {
		stages[0].split(text, yield)
		return
	}
	stages[0].split(text, func(piece string) { splitStages(stages[1:], piece, yield) })
}

// scanner is a hand-written pattern that leaves no gaps: it gives the size in
// bytes of the word that text begins with.
type scanner func(text string) int

func (s scanner) split(text string, yield func(string)) {
	for text != "" {
		n := s(text)
		yield(text[:n])
		text = text[n:]
	}
}

// regex is a pattern, compiled when first used.
type regex func() *regexp2.Regexp

func pattern(expr string) regex {
	return sync.OnceValue(func() *regexp2.Regexp { return regexp2.MustCompile(expr, regexp2.None) })
}

func (r regex) split(text string, yield func(string)) {
	for text != "" {
		block := text[:blockEnd(text)]
		splitRegex(r(), block, yield)
		text = text[len(block):]
	}
}

// longestBlock bounds, in bytes, the text that is matched at once, and with it
// the memory of matching, which is some 10 times as much.
const longestBlock = 1 << 20

// blockEnd returns the end of a block: all of a text that is not too long. A longer text is cut after a line whose
// end stands alone between other characters. There every pattern ends a word whatever follows.
func blockEnd(text string) int {
	if len(text) <= longestBlock {
		return len(text)
	}
	for i := longestBlock - 1; i > longestBlock/2; i-- {
		if text[i] == '\n' && text[i-1] > ' ' && text[i-1] < utf8.RuneSelf && text[i+1] > ' ' && text[i+1] < utf8.RuneSelf {
			return i + 1
		}
	}
	return len(cutAt(text, longestBlock))
}

// splitRegex yields the matches and the gaps between them. Characters are
// matched one by one, a byte that is not UTF-8 as U+FFFD; offsets are kept so
// that the pieces hold the bytes themselves.
func splitRegex(re *regexp2.Regexp, text string, yield func(string)) {
	runes := make([]rune, 0, len(text))
	starts := make([]int32, 0, len(text)+1)
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		runes = append(runes, c)
		starts = append(starts, int32(i))
		i += n
	}
	starts = append(starts, int32(len(text)))
	done := int32(0)
	// Without a timeout, which is not set, matching cannot fail.
	m, _ := re.FindRunesMatch(runes)
	for ; m != nil; m, _ = re.FindNextMatch(m) {
		lo, hi := starts[m.Index], starts[m.Index+m.Length]
		if lo > done {
			yield(text[done:lo])
		}
		if hi > lo {
			yield(text[lo:hi])
		}
		done = hi
	}
	if int(done) < len(text) {
		yield(text[done:])
	}
}
