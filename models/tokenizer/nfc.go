package tokenizer

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// keyNFC says whether texts are composed (Unicode normalization form C) ahead of
// splitting. GGUF has no key for it: without this one the pre-tokenizer's name decides,
// as the tokenizers of these models do.
const keyNFC = "lutra.tokenizer.nfc"

// joiner is the character that norm puts into runs of more than 30 combining marks
// (UAX #15, "Stream-Safe Text Format"), and form C itself does not.
const joiner = "\u034f"

// compose returns form C of text, in time and memory linear in its length. Runs of more than 30
// marks are ordered and composed 30 at a time, which form C does not bound.
func compose(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
	if s := norm.NFC.String(text); strings.Count(s, joiner) == strings.Count(text, joiner) {
		return s
	}
	var b strings.Builder
	for text != "" {
		n := norm.NFC.NextBoundaryInString(text, true)
		if n <= 0 {
			n = len(text)
		}
		part := text[:n]
		if s := norm.NFC.String(part); strings.Count(s, joiner) == strings.Count(part, joiner) {
			part = s
		}
		b.WriteString(part)
		text = text[n:]
	}
	return b.String()
}
