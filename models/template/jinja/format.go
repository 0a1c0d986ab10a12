package jinja

import (
	"fmt"
	"strconv"
	"strings"
)

// maxWidth bounds widths and precisions in formats.
const maxWidth = 1000

// percentFormat formats as Python's format % values does.
func percentFormat(r *resources, format string, values any) (any, error) {
	rest := []any{values}
	if t, ok := values.(*List); ok && t.Tuple {
		rest = t.Items
	}
	named, _ := values.(*Dict)
	if err := r.chargeTimes(len(format), 4); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := 0; i < len(format); {
		n := strings.IndexByte(format[i:], '%')
		if n < 0 {
			b.WriteString(format[i:])
			break
		}
		b.WriteString(format[i : i+n])
		i += n + 1
		key := ""
		if named != nil && strings.HasPrefix(format[i:], "(") {
			end := strings.IndexByte(format[i:], ')')
			if end < 0 {
				return nil, fmt.Errorf("incomplete format key")
			}
			key = format[i+1 : i+end]
			i += end + 1
		}
		start := i
		for i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
			i++
		}
		if i == len(format) {
			return nil, fmt.Errorf("incomplete format")
		}
		flags, verb := format[start:i], format[i]
		i++
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		var v any
		switch {
		case key != "":
			v, _ = named.Get(key)
		case len(rest) == 0:
			return nil, fmt.Errorf("not enough values for the format")
		default:
			v, rest = rest[0], rest[1:]
		}
		if err := formatOne(r, &b, flags, verb, v); err != nil {
			return nil, err
		}
	}
	return b.String(), nil
}

// formatOne writes one value; Go's flags mean what Python's do.
func formatOne(r *resources, b *strings.Builder, flags string, verb byte, v any) error {
	width, precision, _ := strings.Cut(strings.TrimLeft(flags, "-+ #0"), ".")
	for _, part := range []string{width, precision} {
		if n, err := strconv.Atoi(part); part != "" && (err != nil || n > maxWidth) {
			return fmt.Errorf("bad format %%%.100s%c", flags, verb)
		}
	}
	if err := r.charge(2 * maxWidth); err != nil { // the widest field
		return err
	}
	switch verb {
	case 's', 'r':
		var text strings.Builder
		if err := writeValue(r, &text, v, verb == 'r', 0); err != nil {
			return err
		}
		if err := r.charge(text.Len()); err != nil {
			return err
		}
		fmt.Fprintf(b, "%"+strings.ReplaceAll(flags, "0", "")+"s", text.String())
		return nil
	case 'd', 'i', 'x', 'X', 'o':
		i, f, isInt, ok := number(v)
		if !ok {
			return fmt.Errorf("%%%c needs a number, not %s", verb, kindName(v))
		}
		if !isInt {
			i = int64(f)
		}
		if verb == 'i' {
			verb = 'd'
		}
		fmt.Fprintf(b, "%"+flags+string(verb), i)
		return nil
	case 'f', 'F', 'e', 'E', 'g', 'G':
		_, f, _, ok := number(v)
		if !ok {
			return fmt.Errorf("%%%c needs a number, not %s", verb, kindName(v))
		}
		fmt.Fprintf(b, "%"+flags+string(verb), f)
		return nil
	}
	return fmt.Errorf("unknown format %%%c", verb)
}

// braceFormat formats as Python's format.format(...) does, without format specifications.
func braceFormat(r *resources, format string, a args) (any, error) {
	if err := r.chargeTimes(len(format), 16); err != nil {
		return nil, err
	}
	var b strings.Builder
	auto := 0
	for i := 0; i < len(format); {
		n := strings.IndexAny(format[i:], "{}")
		if n < 0 {
			b.WriteString(format[i:])
			break
		}
		b.WriteString(format[i : i+n])
		i += n
		if strings.HasPrefix(format[i:], "{{") || strings.HasPrefix(format[i:], "}}") {
			b.WriteByte(format[i])
			i += 2
			continue
		}
		end := strings.IndexByte(format[i:], '}')
		if format[i] == '}' || end < 0 {
			return nil, fmt.Errorf("single %c in a format", format[i])
		}
		field := format[i+1 : i+end]
		i += end + 1
		var v any
		if field == "" {
			field = strconv.Itoa(auto)
			auto++
		}
		if at, err := strconv.Atoi(field); err == nil {
			if at < 0 || at >= len(a.pos) {
				return nil, fmt.Errorf("no value for {%.100s}", field)
			}
			v = a.pos[at]
		} else {
			named, ok := a.named[field]
			if !ok {
				return nil, fmt.Errorf("no value for {%.100s}", field)
			}
			v = named
		}
		if err := writeValue(r, &b, v, false, 0); err != nil {
			return nil, err
		}
	}
	return b.String(), nil
}
