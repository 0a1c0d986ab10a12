package quantize

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// stored writes a file and returns its path.
func stored(t *testing.T, meta gguf.Metadata, tensors []gguf.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "imatrix.gguf")
	out, err := os.Create(path)
	if err == nil {
		err = errors.Join(gguf.Write(out, meta, tensors), out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsCollectedWeighsErrors(t *testing.T) {
	f := fileOf(t, map[string][]int{"blk.0.ffn_down_exps.weight": {256, 4, 3}}, func(i int) float32 { return float32(int(mix(uint64(i))>>40)-1<<23) * 0x1p-28 })
	x := f.Tensor("blk.0.ffn_down_exps.weight")
	var c Collector
	row := make([]float32, 256)
	for n := range 2 {
		for i := range row {
			row[i] = float32(i%16*(n+1)) / 8
		}
		c.Add(x.Name, 0, 3, row)
		c.Add(x.Name, 2, 3, row) // no row chooses matrix 1
	}
	if tensors, unseen := c.Tensors(); tensors != 1 || unseen != 1 {
		t.Errorf("Tensors() = %d, %d", tensors, unseen)
	}
	m := collectedBy(t, &c)
	weights, err := m.of(x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 256 {
		v := float32(i%16) / 8
		if mean := (v*v + 4*v*v) / 2; weights[i] != mean || weights[256+i] != 1 || weights[512+i] != mean {
			t.Fatalf("column %d has %v, %v, %v; want %v, 1 and the same", i, weights[i], weights[256+i], weights[512+i], mean)
		}
	}
	g, results := written(t, f, Options{Type: named(t, "Q4_0"), Pure: true, Importance: m})
	y := g.Tensor(x.Name)
	for e := range 3 {
		want := make([]byte, y.Bytes()/3)
		if err := Encode(gguf.Q4_0, want, values(t, x)[e*1024:][:1024], weights[e*256:][:256]); err != nil {
			t.Fatal(err)
		}
		if string(y.Data[e*len(want):][:len(want)]) != string(want) {
			t.Errorf("expert %d is not weighed by its own importances", e)
		}
	}
	if !results[x.Name].Weighed {
		t.Error("it is not said to be weighed")
	}
	if set, _ := g.Metadata.String("quantize.imatrix.dataset"); set != "text" {
		t.Errorf("the file says that it was weighed by %q", set)
	}
}

func TestImportancesOfAnotherModelAreRefused(t *testing.T) {
	f := fileOf(t, map[string][]int{"blk.0.ffn_up.weight": {256, 4}, "token_embd.weight": {256, 4}}, func(int) float32 { return 1 })
	var c Collector
	c.Add("blk.0.ffn_up.weight", 0, 1, make([]float32, 128))
	if _, err := NewPlan(f, Options{Type: named(t, "Q4_0"), Importance: collectedBy(t, &c)}); err == nil || !strings.Contains(err.Error(), "blk.0.ffn_up.weight") {
		t.Errorf("NewPlan = %v", err)
	}
	c = Collector{} // that of an embedding is left out, as llama-quantize does
	c.Add("token_embd.weight", 0, 1, make([]float32, 128))
	if _, err := NewPlan(f, Options{Type: named(t, "Q4_0"), Importance: collectedBy(t, &c)}); err != nil {
		t.Errorf("NewPlan = %v", err)
	}
}

func TestImportancesThatAreNoneAreRefused(t *testing.T) {
	sums := func(dims []int, v ...float32) gguf.Tensor {
		return gguf.Tensor{Name: "w.in_sum2", Type: gguf.F32, Dims: dims, Data: floatBytes(v)}
	}
	counts := func(v ...float32) gguf.Tensor {
		return gguf.Tensor{Name: "w.counts", Type: gguf.F32, Dims: []int{1, len(v)}, Data: floatBytes(v)}
	}
	imatrix := gguf.Metadata{"general.type": "imatrix"}
	for says, c := range map[string]struct {
		meta    gguf.Metadata
		tensors []gguf.Tensor
	}{
		`"general.type"`:  {gguf.Metadata{"general.type": "model"}, []gguf.Tensor{sums([]int{1}, 1), counts(1)}},
		"w.counts":        {imatrix, []gguf.Tensor{sums([]int{1}, 1)}},
		"does not belong": {imatrix, []gguf.Tensor{sums([]int{3}, 1, 2, 3), counts(1, 1)}},
		"want F32":        {imatrix, []gguf.Tensor{{Name: "w.counts", Type: gguf.F16, Dims: []int{1}, Data: []byte{0, 0}}}},
	} {
		if _, err := OpenImportance(stored(t, c.meta, c.tensors)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want it to say %s", err, says)
		}
	}
	w := &gguf.Tensor{Name: "w", Type: gguf.F32, Dims: []int{2, 1}}
	for _, bad := range []float32{-1, float32(math.NaN()), float32(math.Inf(1))} {
		m := opened(t, imatrix, []gguf.Tensor{sums([]int{2}, 1, bad), counts(1)})
		if _, err := m.of(w); !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "column 1") {
			t.Errorf("importance %v: %v", bad, err)
		}
	}
}
