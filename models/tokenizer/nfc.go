package tokenizer

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/lutra-lm/lutra/models/gguf"
)

// keyNFC says whether texts are composed (Unicode normalization form C) ahead of
// splitting. GGUF has no key for it: without this one the pre-tokenizer's name decides,
// as the tokenizers of these models do.
const keyNFC = "lutra.tokenizer.nfc"

// keyNFKC says that texts are written in form KC, which has one spelling for characters that look or
// mean the same (ﬁ is fi).
const keyNFKC = "lutra.tokenizer.nfkc"

// joiner is the character that norm puts into runs of more than 30 combining marks
// (UAX #15, "Stream-Safe Text Format"), and form C itself does not.
const joiner = "\u034f"

// compose returns text in form C or KC, in time and memory linear in its length. Runs of more than 30
// marks are ordered and composed 30 at a time, which form C does not bound.
func compose(form norm.Form, text string) string {
	if form.IsNormalString(text) {
		return text
	}
	if s := form.String(text); strings.Count(s, joiner) == strings.Count(text, joiner) {
		return s
	}
	var b strings.Builder
	for text != "" {
		n := form.NextBoundaryInString(text, true)
		if n <= 0 {
			n = len(text)
		}
		part := text[:n]
		if s := form.String(part); strings.Count(s, joiner) == strings.Count(part, joiner) {
			part = s
		}
		b.WriteString(part)
		text = text[n:]
	}
	return b.String()
}

// composer returns what brings texts into the form that a file asks for; nil: they stay as they are.
func composer(md gguf.Metadata, nfc bool) func(string) string {
	switch {
	case flag(md, keyNFKC, false):
		return func(text string) string { return compose(norm.NFKC, text) }
	case flag(md, keyNFC, nfc):
		return func(text string) string { return compose(norm.NFC, text) }
	}
	return nil
}
