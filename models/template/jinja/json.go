package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	r               *resources
	b               strings.Builder
	indent          string // "" writes all on one line
	itemSep, keySep string
	sortKeys        bool
	ascii           bool
}

// toJSON computes the filter as transformers defines it.
func toJSON(r *resources, v any, a args) (any, error) {
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
	return w.b.String(), nil
}

// text appends s as it is.
func (w *jsonWriter) text(s string) error {
	if err := w.r.charge(len(s)); err != nil {
		return err
	}
	w.b.WriteString(s)
	return nil
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
		return w.text("null")
	case bool:
		return w.text(strconv.FormatBool(v))
	case int64:
		return w.text(strconv.FormatInt(v, 10))
	case float64:
		return w.text(jsonFloat(v))
	case string:
		return w.str(v)
	case *List:
		return w.sequence("[", "]", len(v.Items), depth, func(i int) error { return w.write(v.Items[i], depth+1) })
	case *Dict:
		return w.dict(v, depth)
	case undefined:
		return v.err()
	}
	return fmt.Errorf("%s cannot be written as JSON", kindName(v))
}

func (w *jsonWriter) sequence(open, shut string, n, depth int, element func(i int) error) error {
	if err := w.text(open); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if err := w.text(w.itemSep); err != nil {
				return err
			}
		}
		if err := w.newline(depth + 1); err != nil {
			return err
		}
		if err := element(i); err != nil {
			return err
		}
	}
	if n > 0 {
		if err := w.newline(depth); err != nil {
			return err
		}
	}
	return w.text(shut)
}

func (w *jsonWriter) newline(depth int) error {
	if w.indent == "" {
		return nil
	}
	if err := w.r.chargeTimes(depth, len(w.indent)); err != nil {
		return err
	}
	w.b.WriteByte('\n')
	w.b.WriteString(strings.Repeat(w.indent, depth))
	return nil
}

func (w *jsonWriter) dict(d *Dict, depth int) error {
	if err := w.r.charge(itemBytes * d.Len()); err != nil {
		return err
	}
	places := make([]int, d.Len())
	for i := range places {
		places[i] = i
	}
	if w.sortKeys {
		if err := mergeSort(places, func(i, j int) (int, error) { return order(w.r, d.keys[i], d.keys[j], 0) }); err != nil {
			return err
		}
	}
	return w.sequence("{", "}", len(places), depth, func(i int) error {
		if err := w.str(jsonKey(d.keys[places[i]])); err != nil {
			return err
		}
		if err := w.text(w.keySep); err != nil {
			return err
		}
		return w.write(d.values[places[i]], depth+1)
	})
}

// jsonKey returns a key as JSON has it: a string.
func jsonKey(k any) string {
	switch k := k.(type) {
	case string:
		return k
	case bool:
		return strconv.FormatBool(k)
	case int64:
		return strconv.FormatInt(k, 10)
	case float64:
		return jsonFloat(k)
	}
	return "null"
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

// str appends s quoted, the characters of which may take six bytes and some time.
func (w *jsonWriter) str(s string) error {
	if err := w.r.chargeTimes(len(s)+2, 8); err != nil {
		return err
	}
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
	return nil
}
