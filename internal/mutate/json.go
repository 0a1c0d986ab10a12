package mutate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
)

// JSON returns a text like a good one, with changes.
func JSON(text []byte, c *Choices) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic("mutate: the text to begin with is no JSON: " + err.Error())
	}
	c.times(func() { v = c.within(v, 0) })
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if c.one(40) {
		c.overwrite(out, len(out))
	}
	return out
}

// within changes a value, or one that is in it.
func (c *Choices) within(v any, depth int) any {
	if c.one(6) && depth > 0 {
		return c.odd(v)
	}
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			return c.odd(v)
		}
		v = maps.Clone(v)
		key := keys[c.Below(len(keys))]
		switch c.Below(8) {
		case 0:
			delete(v, key)
		case 1:
			v[keys[c.Below(len(keys))]] = v[key]
		default:
			v[key] = c.within(v[key], depth+1)
		}
		return v
	case []any:
		if len(v) == 0 {
			return c.odd(v)
		}
		v = slices.Clone(v)
		i := c.Below(len(v))
		switch c.Below(8) {
		case 0:
			return slices.Delete(v, i, i+1)
		case 1:
			return append(v, v[i])
		}
		v[i] = c.within(v[i], depth+1)
		return v
	}
	return c.odd(v)
}

// odd chooses what may stand in a value's place.
func (c *Choices) odd(was any) any {
	if c.one(3) {
		return pick[any](c, nil, map[string]any{}, []any{}, "", "x", 0, -1, true, false, 1e9, 1e300, 0.5, []any{nil}, []any{1, 2}, map[string]any{"a": nil}, json.Number("1e-320"), json.Number("123456789012345678901234567890"))
	}
	switch v := was.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return c.number(n)
		}
		f, _ := v.Float64()
		if f = c.float(f); f-f == 0 {
			return f
		}
	case string:
		return c.text(v)
	case bool:
		return !v
	case []any:
		return v[:c.Below(len(v)+1)]
	}
	return nil
}

// widths are the bytes of safetensors' types, by name.
var widths = map[string]int{"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8, "F8_E8M0": 1}

var widthNames = slices.Sorted(maps.Keys(widths))

var safetensors = format{len(widthNames), func(kind int, dims []int) (int, bool) {
	n := widths[widthNames[kind]]
	for _, d := range dims {
		if n *= d; n < 0 || n > maxData {
			return 0, false
		}
	}
	return n, true
}}

// entry is a tensor in a header of safetensors.
type entry struct {
	Kind    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// Safetensors returns a file like a good one of safetensors, with changes.
func Safetensors(file []byte, c *Choices) []byte {
	n := 8 + int(binary.LittleEndian.Uint64(file))
	head, data := map[string]json.RawMessage{}, file[n:]
	if err := json.Unmarshal(file[8:n], &head); err != nil {
		panic("mutate: the file to begin with is no safetensors: " + err.Error())
	}
	var ts []tensor
	for _, name := range slices.Sorted(maps.Keys(head)) {
		var e entry
		if err := json.Unmarshal(head[name], &e); err == nil && e.Kind != "" {
			ts = append(ts, tensor{name, slices.Index(widthNames, e.Kind), e.Shape, data[e.Offsets[0]:e.Offsets[1]]})
		}
	}
	raw := 0
	c.times(func() {
		if c.one(4) {
			raw++
		} else {
			ts = safetensors.change(c, ts)
		}
	})
	entries, out := map[string]entry{}, []byte(nil)
	for _, t := range ts {
		entries[t.name] = entry{widthNames[max(0, t.kind)], t.dims, [2]int{len(out), len(out) + len(t.data)}}
		out = append(out, t.data...)
	}
	text, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	if raw > 0 {
		text = JSON(text, c)
	}
	whole := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, out)
	if c.one(40) {
		c.overwrite(whole, 8+len(text))
	}
	return whole
}
