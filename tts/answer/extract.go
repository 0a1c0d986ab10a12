package answer

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// auto tries the places from the surest to the least sure.
func auto(text string) (string, bool) {
	for _, extract := range []func(string) (string, bool){boxed, labelled, lastNumber} {
		if s, ok := extract(text); ok {
			return s, true
		}
	}
	return "", false
}

// boxed returns the argument of the last \boxed whose braces close.
func boxed(text string) (string, bool) {
	for end := len(text); ; {
		at := strings.LastIndex(text[:end], `\boxed`)
		if at < 0 {
			return "", false
		}
		rest := strings.TrimLeft(text[at+len(`\boxed`):], " ")
		if s, ok := braced(rest); ok {
			return s, strings.TrimSpace(s) != ""
		}
		if end < len(text) { // a second unclosed one: looking further would be quadratic
			return "", false
		}
		end = at
	}
}

// braced returns the text within the braces that s begins with.
func braced(s string) (string, bool) {
	if s == "" || s[0] != '{' {
		return "", false
	}
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[1:i], true
			}
		}
	}
	return "", false
}

var label = regexp.MustCompile(`(?i)\banswer(?:\*\*)?(?:\s*:|\s+is\b:?|\s*=)(?:\*\*)?`)

// labelled returns the rest of the line after the last label that has one.
func labelled(text string) (string, bool) {
	found := label.FindAllStringIndex(text, -1)
	for i := len(found) - 1; i >= 0; i-- {
		line, _, _ := strings.Cut(strings.TrimLeft(text[found[i][1]:], " \t"), "\n")
		if line = strings.TrimSpace(line); line != "" {
			return sentence(line), true
		}
	}
	return "", false
}

// sentence cuts a line after its first sentence: "5. That is all." is "5".
func sentence(line string) string {
	if i := strings.Index(line, ". "); i > 0 {
		line = line[:i]
	}
	return strings.TrimRight(line, ".*")
}

// numeral is a number as people write it, with sign, currency, fraction or percent.
var numeral = regexp.MustCompile(`[-−]?[$€£]?(?:\d{1,3}(?:,\d{3})+\b|\d+)?(?:\.?\d+)(?:[eE][-+]?\d{1,3}\b)?(?:\s?/\s?\d+)?\s?%?`)

// lastNumber returns the last number of a text. A minus after a digit or a
// bracket is an operator: "7-2" ends with 2.
func lastNumber(text string) (string, bool) {
	found := numeral.FindAllStringIndex(text, -1)
	if len(found) == 0 {
		return "", false
	}
	lo, hi := found[len(found)-1][0], found[len(found)-1][1]
	s := strings.TrimSpace(text[lo:hi])
	if lo > 0 && strings.ContainsRune("0123456789)]", rune(text[lo-1])) {
		s = strings.TrimLeft(s, "-−")
	}
	return s, true
}

var (
	chosen = regexp.MustCompile(`(?i:\b(?:answer|choice|option)\b[^A-Za-z0-9\n]*(?:is\b)?[^A-Za-z0-9\n]*)\(?([A-E])\b|\(([A-E])\)`)
	letter = regexp.MustCompile(`\b([A-E])\b`)
)

// choice returns the last letter that is marked as the answer, else the last that
// stands alone.
func choice(text string) (string, bool) {
	if found := chosen.FindAllStringSubmatch(text, -1); len(found) > 0 {
		last := found[len(found)-1]
		return last[1] + last[2], true
	}
	if found := letter.FindAllString(text, -1); len(found) > 0 {
		return found[len(found)-1], true
	}
	return "", false
}

// lastLine returns the last line that is not blank.
func lastLine(text string) (string, bool) {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:], text != ""
}

// lastMatch returns the first group, or all, of re's last match.
func lastMatch(re *regexp.Regexp, text string) (string, bool) {
	found := re.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return "", false
	}
	last := found[len(found)-1]
	return last[min(1, len(last)-1)], true
}

// maxJSON bounds the places that are tried as the beginning of a JSON value.
const maxJSON = 64

// lastJSON returns the value at pointer in the last JSON object or array of text
// that has one there. A string gives its contents, anything else its JSON.
func lastJSON(text, pointer string) (out string, ok bool) {
	for tries := 0; tries < maxJSON; tries++ {
		at := strings.IndexAny(text, "{[")
		if at < 0 {
			break
		}
		text = text[at:]
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			text = text[1:]
			continue
		}
		text = text[d.InputOffset():]
		if s, found := follow(v, pointer); found {
			out, ok = s, true
		}
	}
	return out, ok
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// follow resolves a JSON pointer (RFC 6901).
func follow(v any, pointer string) (string, bool) {
	for pointer != "" {
		var token string
		token, pointer, _ = strings.Cut(pointer[1:], "/")
		if pointer != "" {
			pointer = "/" + pointer
		}
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[unescape.Replace(token)]
			if !ok {
				return "", false
			}
			v = next
		case []any:
			i, err := strconv.ParseUint(token, 10, 31)
			if err != nil || int(i) >= len(node) {
				return "", false
			}
			v = node[i]
		default:
			return "", false
		}
	}
	if s, ok := v.(string); ok {
		return s, true
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // cannot be: v was decoded
		return "", false
	}
	return strings.TrimSpace(b.String()), true
}
