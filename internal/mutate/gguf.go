package mutate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/lutra-lm/lutra/models/gguf"
)

// kinds are the storage types that files have, and one that none has.
var kinds = []gguf.Type{gguf.F32, gguf.F16, gguf.Q4_0, gguf.Q4_1, gguf.Q5_0, gguf.Q5_1, gguf.Q8_0, gguf.Q2_K, gguf.Q3_K, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K,
	gguf.IQ2_XXS, gguf.IQ2_XS, gguf.IQ3_XXS, gguf.IQ1_S, gguf.IQ4_NL, gguf.IQ3_S, gguf.IQ2_S, gguf.IQ4_XS, gguf.IQ1_M, gguf.BF16, gguf.TQ1_0, gguf.TQ2_0, gguf.I2_S,
	gguf.MXFP4, gguf.NVFP4, gguf.Q1_0, gguf.Q2_0, gguf.STQ1_0, gguf.PQ2_0, gguf.PTQ1_0, gguf.Type(24)}

var ggufs = format{len(kinds), func(kind int, dims []int) (int, bool) {
	n, err := kinds[kind].Size(dims)
	return n, err == nil
}}

// GGUF returns a file like f, whose tensors are in memory, with changes. unsaid are keys, behind
// the architecture's name, that f may lack.
func GGUF(f *gguf.File, unsaid []string, c *Choices) []byte {
	md, ts := maps.Clone(f.Metadata), make([]tensor, len(f.Tensors))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		ts[i] = tensor{t.Name, slices.Index(kinds, t.Type), t.Dims, t.Data}
	}
	arch, _ := md.String("general.architecture")
	raw := 0
	c.times(func() {
		switch c.Below(8) {
		case 0, 1, 2:
			keys := slices.Sorted(maps.Keys(md))
			if len(keys) == 0 {
				return
			}
			key := keys[c.Below(len(keys))]
			if was := md[key]; c.one(12) {
				delete(md, key)
			} else {
				md[key] = c.value(was)
			}
		case 3:
			if len(unsaid) > 0 {
				md[arch+"."+unsaid[c.Below(len(unsaid))]] = c.value(pick[any](c, uint32(1), float32(1), "yarn", true, []int32{1, 0}, []bool{true, false}))
			}
		case 4, 5, 6:
			ts = ggufs.change(c, ts)
		case 7:
			raw++
		}
	})
	file, ok := written(md, ts)
	if !ok { // two tensors of a name, or a value that no file has
		file, _ = written(f.Metadata, ts[:min(1, len(ts))])
		raw++
	}
	for ; raw > 0; raw-- {
		c.damage(file, ts)
	}
	if c.one(40) {
		file = file[:c.Below(len(file)+1)]
	}
	return file
}

// damage overwrites something that a well-formed file would not say.
func (c *Choices) damage(file []byte, ts []tensor) {
	data := 0
	for _, t := range ts {
		data += len(t.data)
	}
	if len(ts) == 0 || c.one(2) {
		c.overwrite(file, max(24, len(file)-data))
		return
	}
	name := ts[c.Below(len(ts))].name // behind it: dimensions, type and offset
	at := bytes.Index(file, append(binary.LittleEndian.AppendUint64(nil, uint64(len(name))), name...))
	c.writeAt(file, max(0, at)+8+len(name)+4*c.Below(9))
}

// written writes a file.
func written(md gguf.Metadata, ts []tensor) ([]byte, bool) {
	sources := make([]gguf.Source, len(ts))
	for i, t := range ts {
		if t.kind < 0 {
			return nil, false
		}
		sources[i] = gguf.Source{Name: t.name, Type: kinds[t.kind], Dims: t.dims, Write: func(w io.Writer) error {
			_, err := w.Write(t.data)
			return err
		}}
	}
	var b bytes.Buffer
	if err := gguf.WriteFrom(&b, md, sources); err != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// value chooses what may stand in a value's place.
func (c *Choices) value(was any) any {
	if c.one(8) { // another kind
		return pick[any](c, uint32(0), int32(-1), uint64(math.MaxUint64), float32(math.NaN()), float64(-1), "", "x", true, []int32{}, []string{}, []float32{1}, []any{}, []uint64{1 << 40})
	}
	switch v := was.(type) {
	case bool:
		return !v
	case string:
		return c.text(v)
	case float32:
		return float32(c.float(float64(v)))
	case float64:
		return c.float(v)
	case []any:
		return []any{}
	}
	v := reflect.ValueOf(was)
	if v.Kind() == reflect.Slice {
		return c.array(v)
	}
	return reflect.ValueOf(c.number(int64(truncated(v)))).Convert(v.Type()).Interface()
}

// truncated is an integer as one of 64 bits.
func truncated(v reflect.Value) uint64 {
	if v.CanUint() {
		return v.Uint()
	}
	return uint64(v.Int())
}

// array chooses what may stand in an array's place.
func (c *Choices) array(v reflect.Value) any {
	out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(out, v)
	switch n := v.Len(); {
	case n == 0 || c.one(6):
		return reflect.MakeSlice(v.Type(), pick(c, 0, 0, 1, 2, 1000), 1000).Interface()
	case c.one(5):
		return out.Slice(0, c.Below(n)).Interface()
	case c.one(5):
		return reflect.Append(out, out.Index(c.Below(n))).Interface()
	default:
		for range 1 + c.Below(2)*c.Below(n) {
			at := out.Index(c.Below(n))
			if other := reflect.ValueOf(c.value(at.Interface())); other.Type() == at.Type() {
				at.Set(other)
			}
		}
	}
	return out.Interface()
}

// float chooses what may stand in a number's place.
func (c *Choices) float(was float64) float64 {
	return pick(c, 0, -1, 1, -was, was*2, was/2, 1e-30, 1e30, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), float64(c.number(int64(c.Below(100)))))
}

// text chooses what may stand in a text's place.
func (c *Choices) text(was string) string {
	switch c.Below(4) {
	case 0:
		return was[:c.Below(len(was)+1)]
	case 1:
		b := []byte(was)
		c.overwrite(b, len(b))
		return string(b)
	case 2:
		return fmt.Sprint(was, was)
	}
	return pick(c, "", "x", "llama", "bert", "qwen2", "gpt2", "t5", "yarn", "longrope", "linear", "none", "default", "\xff", "{{", "\x00")
}
