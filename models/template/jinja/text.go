package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// toText converts v as Python's str() does: to what a value prints as.
func toText(r *resources, v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	var b strings.Builder
	err := writeValue(r, &b, v, false, 0)
	return b.String(), err
}

// scalarBytes is no less than a value that is not a string takes to write.
const scalarBytes = 32

// writeValue appends v; quoted asks for Python's repr(), which a value within
// another always gets.
func writeValue(r *resources, b *strings.Builder, v any, quoted bool, depth int) error {
	if err := r.step(); err != nil {
		return err
	}
	if err := r.charge(scalarBytes); err != nil {
		return err
	}
	if depth > MaxNesting {
		return fmt.Errorf("%w: a value nested deeper than %d", ErrLimit, MaxNesting)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case undefined:
		if quoted {
			b.WriteString("Undefined")
		}
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		return writeString(r, b, v, quoted)
	case *List:
		return writeList(r, b, v, depth)
	case *Dict:
		return writeDict(r, b, v, depth)
	case *namespace:
		b.WriteString("<Namespace>")
	default:
		fmt.Fprintf(b, "<%s>", kindName(v))
	}
	return nil
}

func writeString(r *resources, b *strings.Builder, s string, quoted bool) error {
	if !quoted {
		if err := r.charge(len(s)); err != nil {
			return err
		}
		b.WriteString(s)
		return nil
	}
	if err := r.chargeTimes(len(s), 8); err != nil {
		return err
	}
	writeQuoted(b, s)
	return nil
}

func writeList(r *resources, b *strings.Builder, l *List, depth int) error {
	open, shut := "[", "]"
	if l.Tuple {
		open, shut = "(", ")"
	}
	b.WriteString(open)
	for i, item := range l.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := writeValue(r, b, item, true, depth+1); err != nil {
			return err
		}
	}
	if l.Tuple && len(l.Items) == 1 {
		b.WriteString(",")
	}
	b.WriteString(shut)
	return nil
}

func writeDict(r *resources, b *strings.Builder, d *Dict, depth int) error {
	b.WriteString("{")
	for i, k := range d.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := writeValue(r, b, k, true, depth+1); err != nil {
			return err
		}
		b.WriteString(": ")
		if err := writeValue(r, b, d.values[i], true, depth+1); err != nil {
			return err
		}
	}
	b.WriteString("}")
	return nil
}

// floatText returns Python's repr of a float.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// writeQuoted appends Python's repr of a string.
func writeQuoted(b *strings.Builder, s string) {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			fmt.Fprintf(b, `\U%08x`, c)
		}
	}
	b.WriteRune(quote)
}
