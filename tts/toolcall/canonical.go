package toolcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Canonical returns a call's name and arguments, equal for calls of equal meaning. Members are in order, without white space,
// strings in one spelling, and numbers by their value, as RFC 8785 writes them. Unlike there, numbers keep all their digits:
// identifiers are often too long for a double. Arguments that are no JSON, such as the beginning of a call that was cut off,
// stay as they are.
func (c *Call) Canonical() string {
	d := json.NewDecoder(strings.NewReader(c.Arguments))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if _, err := d.Token(); err == io.EOF {
			var b bytes.Buffer
			writeCanonical(&b, v)
			return c.Name + "(" + b.String() + ")"
		}
	}
	return c.Name + "(" + c.Arguments + ")"
}

// writeCanonical writes a decoded value.
func writeCanonical(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, key)
			b.WriteByte(':')
			writeCanonical(b, v[key])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, item)
		}
		b.WriteByte(']')
	case json.Number:
		b.WriteString(canonicalNumber(string(v)))
	default:
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v)         // a string, a truth or null
		b.Truncate(b.Len() - 1) // its line's end
	}
}

// canonicalNumber writes a number as ECMAScript does (Number::toString, ECMA-262 §6.1.6.1.20),
// with all its digits.
func canonicalNumber(s string) string {
	digits, negative := strings.CutPrefix(s, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(digits), "e")
	point := 0 // digits before the point
	if exponent != "" {
		var err error
		if point, err = strconv.Atoi(exponent); err != nil || point < -1<<30 || point > 1<<30 {
			return s
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	point += len(whole)
	digits = strings.TrimLeft(whole+fraction, "0")
	point -= len(whole) + len(fraction) - len(digits)
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return "0"
	}
	n, out := len(digits), ""
	switch {
	case n <= point && point <= 21:
		out = digits + strings.Repeat("0", point-n)
	case 0 < point && point <= 21:
		out = digits[:point] + "." + digits[point:]
	case -6 < point && point <= 0:
		out = "0." + strings.Repeat("0", -point) + digits
	default:
		if out = digits[:1]; n > 1 {
			out += "." + digits[1:]
		}
		out += fmt.Sprintf("e%+d", point-1)
	}
	if negative {
		return "-" + out
	}
	return out
}
