package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromJSON reads a JSON value, keeping the order of an object's keys. Integers
// beyond 64 bits become floats.
func FromJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := readJSON(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("jinja: text after the JSON value")
	}
	return v, nil
}

func readJSON(dec *json.Decoder, depth int) (any, error) {
	if depth > MaxNesting {
		return nil, fmt.Errorf("jinja: JSON nested deeper than %d", MaxNesting)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(t), 10, 64); err == nil {
			return i, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			l := NewList()
			for dec.More() {
				v, err := readJSON(dec, depth+1)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err := dec.Token()
			return l, err
		}
		d := NewDict()
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := readJSON(dec, depth+1)
			if err != nil {
				return nil, err
			}
			if err := d.Set(key, v); err != nil {
				return nil, err
			}
		}
		_, err := dec.Token()
		return d, err
	}
	return t, nil
}

// jsonWriter writes as Python's json.dumps with ensure_ascii=False does.
type jsonWriter struct {
	r               *renderer
	b               strings.Builder
	indent          string // "" writes all on one line
	itemSep, keySep string
	sortKeys        bool
	ascii           bool
}

// tojson is the filter as transformers defines it.
func (r *renderer) tojson(v any, a args) (any, error) {
	w := &jsonWriter{r: r, itemSep: ", ", keySep: ": ", sortKeys: truth(a.get(3, "sort_keys", false))}
	w.ascii = truth(a.get(0, "ensure_ascii", false))
	indent := a.get(1, "indent", nil)
	// Jinja2's own filter has indent first.
	if _, isInt := a.get(0, "", nil).(int64); isInt && len(a.pos) == 1 {
		indent, w.ascii = a.pos[0], false
	}
	switch indent := indent.(type) {
	case nil:
	case string:
		w.indent = indent
	default:
		n, err := integer(indent)
		if err != nil {
			return nil, err
		}
		w.indent = strings.Repeat(" ", min(max(n, 0), 64))
	}
	if w.indent != "" {
		w.itemSep = ","
	}
	if seps, ok := a.get(2, "separators", nil).(*List); ok && len(seps.Items) == 2 {
		w.itemSep, _ = seps.Items[0].(string)
		w.keySep, _ = seps.Items[1].(string)
	}
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return w.b.String(), r.charge(w.b.Len())
}

func (w *jsonWriter) write(v any, depth int) error {
	if err := w.r.step(); err != nil {
		return err
	}
	if depth > MaxNesting {
		return fmt.Errorf("%w: a value nested deeper than %d", ErrLimit, MaxNesting)
	}
	switch v := v.(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strconv.FormatBool(v))
	case int64:
		w.b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		w.b.WriteString(jsonFloat(v))
	case string:
		w.str(v)
	case *List:
		err := w.sequence("[", "]", len(v.Items), depth, func(i int) error { return w.write(v.Items[i], depth+1) })
		if err != nil {
			return err
		}
	case *Dict:
		if err := w.dict(v, depth); err != nil {
			return err
		}
	case undefined:
		return v.err()
	default:
		return fmt.Errorf("%s cannot be written as JSON", kindName(v))
	}
	return w.r.room(w.b.Len())
}

func (w *jsonWriter) sequence(open, shut string, n, depth int, element func(i int) error) error {
	w.b.WriteString(open)
	for i := range n {
		if i > 0 {
			w.b.WriteString(w.itemSep)
		}
		w.newline(depth + 1)
		if err := element(i); err != nil {
			return err
		}
	}
	if n > 0 {
		w.newline(depth)
	}
	w.b.WriteString(shut)
	return nil
}

func (w *jsonWriter) newline(depth int) {
	if w.indent != "" {
		w.b.WriteByte('\n')
		w.b.WriteString(strings.Repeat(w.indent, depth))
	}
}

func (w *jsonWriter) dict(d *Dict, depth int) error {
	order := make([]int, d.Len())
	for i := range order {
		order[i] = i
	}
	if w.sortKeys {
		var failed error
		slices.SortStableFunc(order, func(i, j int) int {
			c, err := w.r.order(d.keys[i], d.keys[j], 0)
			if err != nil {
				failed = err
			}
			return c
		})
		if failed != nil {
			return failed
		}
	}
	return w.sequence("{", "}", len(order), depth, func(i int) error {
		switch k := d.keys[order[i]].(type) {
		case string:
			w.str(k)
		case nil:
			w.str("null")
		case bool:
			w.str(strconv.FormatBool(k))
		case int64:
			w.str(strconv.FormatInt(k, 10))
		case float64:
			w.str(jsonFloat(k))
		}
		w.b.WriteString(w.keySep)
		return w.write(d.values[order[i]], depth+1)
	})
}

// jsonFloat writes what Python does for the values that JSON lacks.
func jsonFloat(f float64) string {
	switch s := floatText(f); s {
	case "inf":
		return "Infinity"
	case "-inf":
		return "-Infinity"
	case "nan":
		return "NaN"
	default:
		return s
	}
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
}

func (w *jsonWriter) str(s string) {
	w.b.WriteByte('"')
	for _, c := range s {
		esc, ok := jsonEscapes[c]
		switch {
		case ok:
			w.b.WriteString(esc)
		case c < 0x20 || w.ascii && c >= 0x7F && c < 0x10000:
			fmt.Fprintf(&w.b, `\u%04x`, c)
		case w.ascii && c >= utf8.RuneSelf:
			c -= 0x10000
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, 0xD800+c>>10, 0xDC00+c&0x3FF)
		default:
			w.b.WriteRune(c)
		}
	}
	w.b.WriteByte('"')
}
