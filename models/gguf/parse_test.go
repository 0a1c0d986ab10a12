package gguf

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// every is metadata with a value of every type.
func every() Metadata {
	return Metadata{
		"general.architecture": "llama",
		"a.u8":                 uint8(200), "a.i8": int8(-100), "a.u16": uint16(60000), "a.i16": int16(-30000),
		"a.u32": uint32(2e9), "a.i32": int32(-2e9), "a.u64": uint64(math.MaxUint64), "a.i64": int64(math.MinInt64),
		"a.f32": float32(1.5), "a.f64": 2.5, "a.true": true, "a.false": false, "a.text": "тернарный", "a.empty": "",
		"b.u8": []uint8{1, 2}, "b.i8": []int8{-1}, "b.u16": []uint16{}, "b.i16": []int16{-3, 3}, "b.u32": []uint32{7},
		"b.i32": []int32{-7, 8}, "b.u64": []uint64{1 << 40}, "b.i64": []int64{-1 << 30}, "b.f32": []float32{0.5, -0.25},
		"b.f64": []float64{0.125}, "b.bool": []bool{true, false}, "b.text": []string{"", "a", "bc"},
		"c.nested": []any{[]any{[]int8{1}, []string{"x"}}, []float32{1}},
	}
}

// small is a file with metadata of every type and tensors of several.
func small(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	err := Write(&b, every(), []Tensor{
		{Name: "vector", Type: F32, Dims: []int{3}, Data: make([]byte, 12)},
		{Name: "matrix", Type: Q8_0, Dims: []int{64, 2, 1, 1}, Data: bytes.Repeat([]byte{1}, 4*34)},
		{Name: "unread", Type: 39, Dims: []int{32, 3}, Data: make([]byte, 51)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenReadsBackTheSame(t *testing.T) {
	f, err := Parse(small(t))
	if err != nil {
		t.Fatal(err)
	}
	if f.Version != 3 {
		t.Errorf("Version = %d, want 3", f.Version)
	}
	if want := every(); !reflect.DeepEqual(f.Metadata, want) {
		t.Errorf("Metadata = %v, want %v", f.Metadata, want)
	}
	m := f.Tensor("matrix")
	if m == nil || m.Type != Q8_0 || m.Cols() != 64 || m.Rows() != 2 || m.Len() != 128 || !bytes.Equal(m.Data, bytes.Repeat([]byte{1}, 136)) {
		t.Errorf("Tensor(matrix) = %+v, want 2 rows of 64 in Q8_0", m)
	}
	if f.Tensor("none") != nil {
		t.Errorf("Tensor(none) exists, want nil")
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if f, err := Open(path); err == nil || f != nil {
			t.Errorf("Open(%s) = %v, %v, want an error", path, f, err)
		}
	}
	if _, err := Open("/nonexistent/x.gguf"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of a missing file = %v, want os.ErrNotExist", err)
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	data := small(t)
	end := len(data) - padding(51, defaultAlignment) // only the last padding may be missing
	for n := range data {
		_, err := Parse(data[:n:n])
		if n < end && !errors.Is(err, ErrFormat) {
			t.Errorf("Parse of the first %d of %d bytes = %v, want ErrFormat", n, len(data), err)
		}
		if n >= end && err != nil {
			t.Errorf("Parse without some of the last padding = %v, want no error", err)
		}
	}
}

func TestChangedBytesNeverPanic(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	data := small(t)
	for i := range data {
		old := data[i]
		for _, b := range []byte{0, 0xff, 0x7f, 0x80, ^old, old + 1, old - 1} {
			data[i] = b
			f, err := Parse(data)
			if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("byte %d = %d: %v wraps none of the sentinels", i, b, err)
			}
			if err == nil {
				touch(t, f)
			}
		}
		data[i] = old
	}
}

// touch uses everything a parsed file offers.
func touch(t testing.TB, f *File) {
	for i := range f.Tensors {
		x := &f.Tensors[i]
		size, err := x.Type.Size(x.Dims)
		if err != nil || size != len(x.Data) || size != x.Bytes() {
			t.Fatalf("tensor %q: %d bytes of data, Bytes says %d, Size %d, %v", x.Name, len(x.Data), x.Bytes(), size, err)
		}
		if f.Tensor(x.Name) != x {
			t.Fatalf("tensor %q is not found by its name", x.Name)
		}
		if !x.Type.Supported() {
			continue
		}
		if err := x.Dequantize(make([]float32, x.Len()), 0); err != nil {
			t.Fatalf("tensor %q: %v", x.Name, err)
		}
	}
	for key := range f.Metadata {
		f.Metadata.Ints(key)
		f.Metadata.Floats(key)
		f.Metadata.Float(key)
		f.Metadata.Int(key)
		f.Metadata.Len(key)
	}
}

// file assembles headers that Write would refuse.
func file(version uint32, tensors, pairs uint64, body func(e *encoder)) []byte {
	e := &encoder{}
	e.raw(magic)
	e.u32(version)
	e.u64(tensors)
	e.u64(pairs)
	if body != nil {
		body(e)
	}
	return e.pad(defaultAlignment)
}

// entry appends a directory entry.
func entry(e *encoder, name string, t Type, offset uint64, dims ...uint64) {
	e.str(name)
	e.u32(uint32(len(dims)))
	for _, d := range dims {
		e.u64(d)
	}
	e.u32(uint32(t))
	e.u64(offset)
}

func TestHostileFilesAreRefusedWithAReason(t *testing.T) {
	one := func(t Type, offset uint64, dims ...uint64) []byte {
		return append(file(3, 1, 0, func(e *encoder) { entry(e, "w", t, offset, dims...) }), make([]byte, 256)...)
	}
	two := func(a, b uint64, names ...string) []byte {
		return append(file(3, 2, 0, func(e *encoder) {
			entry(e, names[0], F32, a, 16)
			entry(e, names[1], F32, b, 16)
		}), make([]byte, 256)...)
	}
	pair := func(t valueType, body func(e *encoder)) []byte {
		return append(file(3, 0, 1, func(e *encoder) {
			e.str("k")
			e.u32(uint32(t))
			body(e)
		}), make([]byte, 64)...)
	}
	key := func(key string, v any) []byte {
		return file(3, 0, 1, func(e *encoder) {
			if err := e.pair(key, v); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, c := range []struct {
		name string
		data []byte
		want error
		says string
	}{
		{"nothing", nil, ErrFormat, "header"},
		{"another magic", []byte("GGML\x03\x00\x00\x00"), ErrFormat, "magic"},
		{"version 1", file(1, 0, 0, nil), ErrUnsupported, "version 1"},
		{"version 4", file(4, 0, 0, nil), ErrUnsupported, "version 4"},
		{"big-endian", []byte("GGUF\x00\x00\x00\x03"), ErrUnsupported, "big-endian"},
		{"too many tensors", file(3, 1<<40, 0, nil), ErrFormat, "tensors announced"},
		{"too many pairs", file(3, 0, math.MaxUint64, nil), ErrFormat, "pairs announced"},
		{"empty key", file(3, 0, 1, func(e *encoder) { e.str(""); e.u32(0); e.u64(0) }), ErrFormat, "empty key"},
		{"key past the end", file(3, 0, 1, func(e *encoder) { e.u64(1 << 62); e.u64(0) }), ErrFormat, "bytes of text"},
		{"repeated key", file(3, 0, 2, func(e *encoder) {
			for range 2 {
				e.str("k")
				e.u32(uint32(typeUint8))
				e.u8(1)
			}
		}), ErrFormat, `key "k"`},
		{"unknown value type", pair(13, func(*encoder) {}), ErrFormat, "value type 13"},
		{"boolean of 2", pair(typeBool, func(e *encoder) { e.u8(2) }), ErrFormat, "boolean"},
		{"unknown element type", pair(typeArray, func(e *encoder) { e.u32(99); e.u64(1) }), ErrFormat, "element type 99"},
		{"long array", pair(typeArray, func(e *encoder) { e.u32(uint32(typeUint8)); e.u64(1 << 50) }), ErrFormat, "elements announced"},
		{"array of overflowing bytes", pair(typeArray, func(e *encoder) { e.u32(uint32(typeFloat64)); e.u64(1 << 61) }), ErrFormat, "elements announced"},
		{"deep nesting", pair(typeArray, func(e *encoder) {
			for range maxArrayDepth {
				e.u32(uint32(typeArray))
				e.u64(1)
			}
			e.u32(uint32(typeUint8))
			e.u64(0)
		}), ErrFormat, "nest deeper"},
		{"part of a split file", key("split.count", uint16(3)), ErrUnsupported, "one of 3 parts"},
		{"alignment 0", key("general.alignment", uint32(0)), ErrFormat, "power of two"},
		{"alignment 24", key("general.alignment", uint32(24)), ErrFormat, "power of two"},
		{"huge alignment", key("general.alignment", uint64(1)<<63), ErrFormat, "power of two"},
		{"alignment of text", key("general.alignment", "32"), ErrFormat, "power of two"},
		{"no dimensions", one(F32, 0), ErrFormat, "dimensions"},
		{"five dimensions", one(F32, 0, 1, 1, 1, 1, 1), ErrFormat, "dimensions"},
		{"zero dimension", one(F32, 0, 8, 0), ErrFormat, "dimension 1 is 0"},
		{"negative dimension", one(F32, 0, math.MaxUint64), ErrFormat, "dimension 0"},
		{"overflowing shape", one(F32, 0, 1<<31, 1<<31, 1<<31), ErrFormat, "overflows"},
		{"overflowing bytes", one(F32, 0, 1<<62), ErrFormat, "overflows"},
		{"elements that overflow where bytes do not", one(TQ1_0, 0, 1<<62, 4), ErrFormat, "overflows"},
		{"partial block", one(Q4_K, 0, 255), ErrFormat, "whole blocks"},
		{"unknown storage type", one(31, 0, 32), ErrUnsupported, "storage type 31"},
		{"misaligned data", one(F32, 4, 8), ErrFormat, "alignment"},
		{"data past the end", one(F32, 0, 65), ErrFormat, "exceed"},
		{"offset past the end", one(F32, 512, 8), ErrFormat, "offset 512 of the first tensor, want 0"},
		{"offset that wraps", one(F32, math.MaxUint64-31, 8), ErrFormat, "of the first tensor, want 0"},
		{"second offset past the end", two(0, 512, "a", "b"), ErrFormat, `tensor "b" at offset 90: malformed GGUF: data offset 512, want 64`},
		{"repeated tensor", two(0, 64, "w", "w"), ErrFormat, "occurs twice"},
		{"overlapping tensors", two(0, 32, "a", "b"), ErrFormat, `data offset 32, want 64: tensor "a" before it takes 64 bytes as F32`},
		{"the same data twice", two(0, 0, "a", "b"), ErrFormat, "data offset 0, want 64"},
		{"another order than that of the directory", two(64, 0, "a", "b"), ErrFormat, "data offset 64 of the first tensor, want 0"},
		{"a gap", two(0, 96, "a", "b"), ErrFormat, "data offset 96, want 64"},
		{"a gap ahead of all", two(32, 96, "a", "b"), ErrFormat, "data offset 32 of the first tensor, want 0"},
		{"something behind the last", append(two(0, 64, "a", "b"), 1), ErrFormat, `tensor "b" at offset 90: malformed GGUF: it takes 64 bytes as F32, and`},
		{"long tensor name", two(0, 64, strings.Repeat("n", maxTensorName+1), "b"), ErrFormat, "a name of 65 bytes"},
	} {
		f, err := Parse(c.data)
		switch {
		case f != nil || !errors.Is(err, c.want):
			t.Errorf("%s: Parse() = %v, want %v", c.name, err, c.want)
		case !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: the error %q does not say %q", c.name, err, c.says)
		}
	}
}

func TestAFileOfVersion2IsRead(t *testing.T) {
	data := small(t)
	data[4] = 2
	if f, err := Parse(data); err != nil || f.Version != 2 {
		t.Errorf("Parse of version 2 = %v, want version 2", err)
	}
}

// A count is believed only as far as the file has room, at every level of
// nesting, so a small file cannot ask for much memory.
func TestMemoryStaysWithinAMultipleOfTheFile(t *testing.T) {
	const size = 1 << 20
	e := &encoder{}
	e.raw(magic)
	e.u32(3)
	e.u64(0)
	e.u64(1)
	e.str("k")
	e.u32(uint32(typeArray))
	for range maxArrayDepth - 1 { // each level announces all that could follow
		e.u32(uint32(typeArray))
		e.u64(uint64(size-len(e.buf)-8) / 12)
	}
	e.u32(uint32(typeString))
	e.u64(uint64(size-len(e.buf)-8) / 8)
	data := append(e.buf, make([]byte, size-len(e.buf))...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse(data)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrFormat) {
		t.Errorf("Parse() = %v, want ErrFormat", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 16*size {
		t.Errorf("parsing %d bytes allocated %d", size, got)
	}
}

func TestNumbersOfAnyWidthAnswerTheAccessorsTheyFit(t *testing.T) {
	m := every()
	for _, c := range []struct {
		key   string
		i     int64
		u     uint64
		iOK   bool
		uOK   bool
		float float64
	}{
		{"a.u8", 200, 200, true, true, 200},
		{"a.i8", -100, 0, true, false, -100},
		{"a.u16", 60000, 60000, true, true, 60000},
		{"a.i16", -30000, 0, true, false, -30000},
		{"a.u32", 2e9, 2e9, true, true, 2e9},
		{"a.i32", -2e9, 0, true, false, -2e9},
		{"a.u64", 0, math.MaxUint64, false, true, math.MaxUint64},
		{"a.i64", math.MinInt64, 0, strconv.IntSize == 64, false, math.MinInt64},
	} {
		if i, ok := m.Int(c.key); ok != c.iOK || ok && int64(i) != c.i {
			t.Errorf("Int(%s) = %d, %t, want %d, %t", c.key, i, ok, c.i, c.iOK)
		}
		if u, ok := m.Uint(c.key); ok != c.uOK || ok && u != c.u {
			t.Errorf("Uint(%s) = %d, %t, want %d, %t", c.key, u, ok, c.u, c.uOK)
		}
		if f, ok := m.Float(c.key); !ok || f != c.float {
			t.Errorf("Float(%s) = %g, %t, want %g", c.key, f, ok, c.float)
		}
	}
	if f, ok := m.Float("a.f32"); !ok || f != 1.5 {
		t.Errorf("Float(a.f32) = %g, %t, want 1.5", f, ok)
	}
	for _, key := range []string{"a.text", "a.true", "a.f32", "b.i32", "missing"} {
		if _, ok := m.Int(key); ok {
			t.Errorf("Int(%s) reports a value", key)
		}
	}
	if v, ok := m.Bool("a.true"); !v || !ok {
		t.Errorf("Bool(a.true) = %t, %t, want true", v, ok)
	}
	if v, ok := m.Ints("b.i64"); !ok || v[0] != -1<<30 {
		t.Errorf("Ints(b.i64) = %v, %t", v, ok)
	}
	if _, ok := (Metadata{"k": []uint64{1 << 63}}).Ints("k"); ok {
		t.Errorf("Ints reports a value that no int holds")
	}
	if v, ok := m.Floats("b.f64"); !ok || v[0] != 0.125 {
		t.Errorf("Floats(b.f64) = %v, %t", v, ok)
	}
	if v, ok := m.Floats("b.i16"); !ok || v[0] != -3 {
		t.Errorf("Floats(b.i16) = %v, %t", v, ok)
	}
	if v, ok := m.Strings("b.text"); !ok || len(v) != 3 || m.Len("b.text") != 3 || m.Len("a.text") != 0 {
		t.Errorf("Strings(b.text) = %q, %t", v, ok)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small(f))
	f.Add(file(3, 0, 0, nil))
	f.Add(file(2, 1, 0, func(e *encoder) { entry(e, "w", F32, 0, 1) }))
	for _, p := range []part{{40, 64, 1, 12}, {40, 64, 1, 36}, {41, 256, 4, 144}, {41, 256, 4, 192}, {41, 512, 4, 520}, {42, 256, 9, 648}, {42, 256, 9, 612}, {142, 128, 1, 34}, {143, 128, 1, 28}} {
		f.Add(assemble(41, p))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Parse(data)
		if err != nil {
			if g != nil || !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("Parse() = %v, %v", g, err)
			}
			return
		}
		touch(t, g)
		var b bytes.Buffer
		if err := Write(&b, g.Metadata, g.Tensors); err != nil {
			if slices.ContainsFunc(g.Tensors, func(x Tensor) bool { return x.Type == Q1_0_G32 || x.Type == Q2_0C }) {
				return // is not written
			}
			t.Fatalf("Write of what Parse gave: %v", err)
		}
		again, err := Parse(b.Bytes())
		if err != nil {
			t.Fatalf("Parse of what Write gave: %v", err)
		}
		if len(again.Metadata) != len(g.Metadata) || len(again.Tensors) != len(g.Tensors) {
			t.Fatalf("a round trip kept %d keys and %d tensors of %d and %d",
				len(again.Metadata), len(again.Tensors), len(g.Metadata), len(g.Tensors))
		}
	})
}
