package quantize

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// fileOf makes a file of tensors in F32, of values v(i) for element i.
func fileOf(t *testing.T, tensors map[string][]int, v func(i int) float32) *gguf.File {
	t.Helper()
	var list []gguf.Tensor
	for name, dims := range tensors {
		x := gguf.Tensor{Name: name, Type: gguf.F32, Dims: dims}
		values := make([]float32, x.Len())
		for i := range values {
			values[i] = v(i)
		}
		x.Data = floatBytes(values)
		list = append(list, x)
	}
	return parsed(t, gguf.Metadata{"general.architecture": "llama", "llama.block_count": uint32(1)}, list)
}

func parsed(t *testing.T, meta gguf.Metadata, tensors []gguf.Tensor) *gguf.File {
	t.Helper()
	var out bytes.Buffer
	if err := gguf.Write(&out, meta, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func named(t *testing.T, name string) FileType {
	t.Helper()
	typ, ok := FileTypeNamed(name)
	if !ok {
		t.Fatalf("no file type %s", name)
	}
	return typ
}

// written writes f as opt says and reads it again.
func written(t *testing.T, f *gguf.File, opt Options) (*gguf.File, map[string]Result) {
	t.Helper()
	p, err := NewPlan(f, opt)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	results := map[string]Result{}
	if err := p.Write(t.Context(), &out, func(r *Result) { results[r.Name] = *r }); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return g, results
}

func values(t *testing.T, x *gguf.Tensor) []float32 {
	t.Helper()
	v := make([]float32, x.Len())
	if err := x.Dequantize(v, 0); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTernaryWeightsAreKeptWithoutLoss(t *testing.T) {
	f := fileOf(t, map[string][]int{"blk.0.ffn_up.weight": {512, 600}, "blk.0.attn_norm.weight": {512}},
		func(i int) float32 { return float32(int(mix(uint64(i))%3)-1) * 0.03125 })
	want := values(t, f.Tensor("blk.0.ffn_up.weight"))
	for _, name := range []string{"TQ1_0", "TQ2_0", "I2_S", "Q2_0", "PQ2_0", "PTQ1_0"} {
		g, results := written(t, f, Options{Type: named(t, name)})
		r := results["blk.0.ffn_up.weight"]
		x := g.Tensor("blk.0.ffn_up.weight")
		if !r.Lossless || !r.Trits || r.Error != 0 || x.Type.String() != name {
			t.Errorf("%s: %+v of type %v", name, r, x.Type)
		}
		for i, v := range values(t, x) {
			if v != want[i] {
				t.Fatalf("%s: weight %d is %v, want %v", name, i, v, want[i])
			}
		}
		if got := g.Tensor("blk.0.attn_norm.weight").Type; got != gguf.F32 {
			t.Errorf("a norm became %v", got)
		}
		if got := g.FileType(); got != name {
			t.Errorf("FileType() = %q, want %q", got, name)
		}
		// From one ternary type to another nothing needs permission.
		if _, again := written(t, g, Options{Type: named(t, "TQ1_0")}); !again["blk.0.ffn_up.weight"].Lossless {
			t.Errorf("%s to TQ1_0 lost something", name)
		}
	}
}

func TestSparseTernaryWeightsAreKeptWithoutLossInSTQ1_0(t *testing.T) {
	sparse := func(i int) float32 {
		if at := i % 256; at/16%4 == at*7%4 { // one of four that are 16 apart
			return 0
		}
		return float32(int(mix(uint64(i))%2)*2-1) * 0.03125
	}
	shape := map[string][]int{"blk.0.ffn_up.weight": {512, 600}}
	f := fileOf(t, shape, sparse)
	g, results := written(t, f, Options{Type: named(t, "STQ1_0")})
	if r := results["blk.0.ffn_up.weight"]; !r.Lossless || !r.Trits || g.Tensor("blk.0.ffn_up.weight").Type != gguf.STQ1_0 || g.FileType() != "STQ1_0" {
		t.Errorf("%+v of type %v in a file of %s", r, g.Tensor("blk.0.ffn_up.weight").Type, g.FileType())
	}
	p, err := NewPlan(fileOf(t, shape, func(int) float32 { return 0.5 }), Options{Type: named(t, "STQ1_0")})
	if err == nil {
		err = p.Write(t.Context(), io.Discard, func(*Result) {})
	}
	if err == nil || !strings.Contains(err.Error(), "blk.0.ffn_up.weight") || !strings.Contains(err.Error(), "one of four") {
		t.Errorf("weights without zeros: %v", err)
	}
}

func TestWeightsThatAreNotTernaryAreNotSaidToBe(t *testing.T) {
	f := fileOf(t, map[string][]int{"blk.0.ffn_up.weight": {512, 2}}, func(i int) float32 { return float32(i%3-1) * 0.03125 * float32(1+i%2) })
	for _, name := range []string{"TQ2_0", "I2_S"} {
		_, results := written(t, f, Options{Type: named(t, name)})
		if r := results["blk.0.ffn_up.weight"]; r.Trits || r.Lossless || r.Error < 0.1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// Trits whose scale binary16 does not hold are no loss of trits, but one of the scale.
	f = fileOf(t, map[string][]int{"blk.0.ffn_up.weight": {512, 2}}, func(i int) float32 { return float32(i%3-1) * 0.0123 })
	for name, lossless := range map[string]bool{"TQ2_0": false, "I2_S": true} {
		_, results := written(t, f, Options{Type: named(t, name)})
		if r := results["blk.0.ffn_up.weight"]; !r.Trits || r.Lossless != lossless || r.Error > 0x1p-11 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestATensorOfManyPiecesIsThatOfOne(t *testing.T) {
	f := fileOf(t, map[string][]int{"blk.0.ffn_down.weight": {512, 1500}}, func(i int) float32 { return float32(int(mix(uint64(i))>>40)-1<<23) * 0x1p-28 })
	x := f.Tensor("blk.0.ffn_down.weight")
	for _, name := range []string{"Q8_0", "I2_S"} {
		g, results := written(t, f, Options{Type: named(t, name), Pure: true})
		y := g.Tensor(x.Name)
		want := make([]byte, y.Bytes())
		if err := Encode(y.Type, want, values(t, x), nil); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(y.Data, want) {
			t.Errorf("%s: the pieces are not those of the whole", name)
		}
		if e := results[x.Name].Error; e <= 0 || e > 1 {
			t.Errorf("%s: error %v", name, e)
		}
	}
}

func TestWeightsThatHaveNoFormAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		bad  float32
		typ  string
		says string
	}{
		{float32(math.NaN()), "Q4_K_M", "NaN"}, {float32(math.Inf(-1)), "F16", "-Inf"}, {float32(math.Inf(1)), "I2_S", "+Inf"},
		{1e9, "F16", "too large"}, {1e9, "Q8_0", "too large"}, {3e38, "Q6_K", "too large"},
	} {
		f := fileOf(t, map[string][]int{"blk.0.ffn_up.weight": {512, 2}}, func(i int) float32 {
			if i == 700 {
				return c.bad
			}
			return 0.25
		})
		p, err := NewPlan(f, Options{Type: named(t, c.typ)})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Write(t.Context(), io.Discard, func(*Result) {})
		if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "blk.0.ffn_up.weight") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v in %s: %v", c.bad, c.typ, err)
		}
	}
}

func TestWhatIsQuantisedIsNotQuantisedAgainUnasked(t *testing.T) {
	f := fileOf(t, map[string][]int{"blk.0.ffn_up.weight": {512, 2}}, func(i int) float32 { return float32(i%7) * 0.01 })
	g, _ := written(t, f, Options{Type: named(t, "Q8_0")})
	_, err := NewPlan(g, Options{Type: named(t, "Q4_0")})
	if !errors.Is(err, ErrQuantized) || !strings.Contains(err.Error(), "blk.0.ffn_up.weight") {
		t.Errorf("NewPlan of a quantised file = %v", err)
	}
	if h, _ := written(t, g, Options{Type: named(t, "Q4_0"), Requantize: true}); h.Tensors[0].Type != gguf.Q4_0 {
		t.Errorf("with leave it became %v", h.Tensors[0].Type)
	}
	if h, _ := written(t, g, Options{Type: named(t, "F16")}); h.Tensors[0].Type != gguf.F16 {
		t.Errorf("F16 became %v", h.Tensors[0].Type)
	}
}

func TestAFileIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.gguf")
	f := fileOf(t, map[string][]int{"blk.0.ffn_up.weight": {512, 600}, "blk.0.ffn_gate.weight": {512, 600}}, func(i int) float32 { return float32(i % 5) })
	p, err := NewPlan(f, Options{Type: named(t, "Q4_0")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("a signal")
	err = gguf.WriteFile(path, func(w io.Writer) error {
		return p.Write(ctx, w, func(*Result) { cancel(why) })
	})
	if !errors.Is(err, why) {
		t.Errorf("after the context's end: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if err := gguf.WriteFile(path, func(w io.Writer) error { return p.Write(t.Context(), w, func(*Result) {}) }); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "out.gguf" {
		t.Errorf("the folder holds %v", left)
	}
}

func FuzzEncodeReadsBackOrSaysWhyNot(f *testing.F) {
	for i := range Types() {
		f.Add(byte(i), floatBytes([]float32{1, -2, 0.5, 1e-42, -3e38}), floatBytes([]float32{1, 0, 3e38}))
		f.Add(byte(i), floatBytes([]float32{float32(math.NaN())}), []byte{})
		f.Add(byte(i), floatBytes([]float32{float32(math.Inf(1)), 0}), floatBytes([]float32{-1}))
		f.Add(byte(i), floatBytes([]float32{1e-45, -1e-45, 6e-8}), floatBytes([]float32{1e-45, 3e38}))
	}
	types := Types()
	f.Fuzz(func(t *testing.T, which byte, row, weights []byte) {
		name := types[int(which)%len(types)]
		typ, _ := gguf.TypeNamed(name)
		n := 256
		at := func(b []byte, i int) float32 {
			if len(b) < 4 {
				return 0
			}
			k := i % (len(b) / 4) * 4
			return math.Float32frombits(uint32(b[k]) | uint32(b[k+1])<<8 | uint32(b[k+2])<<16 | uint32(b[k+3])<<24)
		}
		src := make([]float32, 2*n)
		var columns []float32
		for i := range src {
			src[i] = at(row, i)
		}
		for i := 0; i < n && len(weights) >= 4; i++ {
			columns = append(columns, at(weights, i))
		}
		size, err := typ.Size([]int{n, 2})
		if err != nil {
			t.Fatal(err)
		}
		x := gguf.Tensor{Type: typ, Dims: []int{n, 2}, Data: make([]byte, size)}
		if err := Encode(typ, x.Data, src, columns); err != nil {
			if !errors.Is(err, ErrValue) && !errors.Is(err, gguf.ErrFormat) {
				t.Fatalf("%s: %v", name, err)
			}
			return
		}
		if err := x.Dequantize(make([]float32, 2*n), 0); err != nil {
			t.Fatal(err)
		}
		if row, ok := x.Finite(0, 2); !ok {
			t.Fatalf("%s: row %d has a scale that is not finite", name, row)
		}
	})
}

func TestFactorsOfNVFP4GoWithTheWeightsThatLeaveIt(t *testing.T) {
	blocks := func(n int) (raw []byte) {
		for i := range n * 36 {
			raw = append(raw, byte(0x38+i*7%11)) // scales that are numbers
		}
		return raw
	}
	of := func(name string, x ...float32) gguf.Tensor {
		return gguf.Tensor{Name: name, Type: gguf.F32, Dims: []int{len(x)}, Data: floatBytes(x)}
	}
	const up, down, q = "blk.0.ffn_up_exps.", "blk.0.ffn_down.", "blk.0.attn_q."
	list := []gguf.Tensor{
		{Name: up + "weight", Type: gguf.NVFP4, Dims: []int{64, 2, 3}, Data: blocks(6)}, of(up+"scale", 0.5, -2, 3), of(up+"input_scale", 9, 9, 9),
		{Name: down + "weight", Type: gguf.NVFP4, Dims: []int{64, 2}, Data: blocks(2)}, of(down+"scale", 0.25),
		{Name: q + "weight", Type: gguf.NVFP4, Dims: []int{64, 2}, Data: blocks(2)},
	}
	f := parsed(t, gguf.Metadata{"general.architecture": "llama", "llama.block_count": uint32(1)}, list)
	g, results := written(t, f, Options{Type: named(t, "F32"), Tensors: []Override{{regexp.MustCompile(`ffn_down\.weight`), gguf.NVFP4}}})
	got, want := make([]float32, 384), make([]float32, 384)
	if err := errors.Join(g.Tensor(up+"weight").Dequantize(got, 0), f.Tensor(up+"weight").Dequantize(want, 0)); err != nil {
		t.Fatal(err)
	}
	for k := range want {
		if want[k] *= []float32{0.5, -2, 3}[k/128]; got[k] != want[k] {
			t.Fatalf("weight %d is %v, want %v", k, got[k], want[k])
		}
	}
	if r := results[up+"weight"]; !r.Lossless || r.squares == 0 {
		t.Errorf("%+v, want no loss", r)
	}
	for name, want := range map[string]bool{up + "scale": false, up + "input_scale": false, down + "weight": true, down + "scale": true, q + "weight": true} {
		if got := g.Tensor(name) != nil; got != want {
			t.Errorf("%s is there: %v, want %v", name, got, want)
		}
	}
	list[1] = of(up+"scale", 1, 2)
	f = parsed(t, f.Metadata, list)
	if _, err := NewPlan(f, Options{Type: named(t, "F32")}); !errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), up+"scale") {
		t.Errorf("two factors of three matrices: %v", err)
	}
}
