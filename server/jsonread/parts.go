package jsonread

import (
	"bytes"
	"encoding/json"
	"iter"
)

// This file walks through JSON that is known to be valid. What it returns are parts
// of the text itself, so that a large body lies in memory once.

// deeper tells whether values are nested in more than most levels. The text need
// not be valid.
func deeper(text []byte, most int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '[', '{':
			if depth++; depth > most {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// stringEnd returns the index after the string that begins at i, or the text's
// length when it does not end.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text)
		}
		escaped := false // by an odd number of backslashes
		for k := i + n - 1; k >= i && text[k] == '\\'; k-- {
			escaped = !escaped
		}
		if i += n; !escaped {
			return i + 1
		}
	}
	return len(text)
}

// valueEnd returns the index after the value that begins at i.
func valueEnd(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '[', '{':
			depth++
			i++
		case ']', '}':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
			continue
		default:
			for i < len(text) && !delimits(text[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// delimits tells whether c ends a number, true, false or null.
func delimits(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// next returns the index of the first value, name or closing bracket from i on.
func next(text []byte, i int) int {
	for i < len(text) && (text[i] == ',' || text[i] == ':' || text[i] == ' ' || '\t' <= text[i] && text[i] <= '\r') {
		i++
	}
	return i
}

// Elements yields a list's elements.
func Elements(list []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for i := next(list, next(list, 0)+1); i < len(list) && list[i] != ']'; {
			end := valueEnd(list, i)
			if !yield(list[i:end:end]) {
				return
			}
			i = next(list, end)
		}
	}
}

// Count counts a list's elements.
func Count(list []byte) (n int) {
	for range Elements(list) {
		n++
	}
	return n
}

// Members yields an object's names, as they are written, and values.
func Members(object []byte) iter.Seq2[json.RawMessage, json.RawMessage] {
	return func(yield func(name, value json.RawMessage) bool) {
		for i := next(object, next(object, 0)+1); i < len(object) && object[i] != '}'; {
			colon := stringEnd(object, i)
			at := next(object, colon)
			end := valueEnd(object, at)
			if !yield(object[i:colon:colon], object[at:end:end]) {
				return
			}
			i = next(object, end)
		}
	}
}
