package tokenizer

import "unicode/utf8"

// output gathers the ids of a text, or hands them on in runs.
type output struct {
	ids  []int32
	take func(run []int32) bool // nil: nobody wants runs
	done bool                   // take has had enough
}

// runLen is about how many ids are handed on together: a few milliseconds' work.
const runLen = 4096

// pause hands on what has gathered, if that is enough, and reports whether to go
// on. Encoders call it after each word.
func (o *output) pause() bool {
	if o.take != nil && len(o.ids) >= runLen {
		o.flush()
	}
	return !o.done
}

func (o *output) flush() {
	if o.take != nil && !o.done && len(o.ids) > 0 {
		o.done = !o.take(o.ids)
		o.ids = o.ids[:0]
	}
}

// longestWord bounds, in bytes, the words that are merged as one, and with
// them the memory of merging, which is some 50 times as much. Longer ones are
// cut: nobody writes them, but somebody may send them. (Meta's tokenizer of
// Llama 3 cuts words of 25,000 characters for the same reason.)
const longestWord = 256 << 10

// cut returns the first piece of a word, at most longestWord bytes that end with a
// whole character.
func cut(word string) string { return cutAt(word, longestWord) }

// cutAt returns as much of text as most bytes hold of whole characters.
func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
