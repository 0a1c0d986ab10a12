package models

import (
	"maps"
	"math"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// seen holds an observer's findings about a matrix.
type seen struct {
	rows int
	sums []float64 // of squares, by column
}

// observe runs tokens through an embedded model and returns what was seen of each matrix.
func observe(t *testing.T, name string, tokens []int32) (map[MatrixPart]seen, *gguf.File) {
	t.Helper()
	f, err := embedded.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	all := map[MatrixPart]seen{}
	p := pool.New(2)
	defer p.Close()
	b, err := LoadFile(f, LoadOptions{Pool: p, Observe: func(of []MatrixPart, rows *kernels.Acts) {
		mu.Lock()
		defer mu.Unlock()
		for _, part := range of {
			s := all[part]
			if s.sums == nil {
				s.sums = make([]float64, rows.K())
			}
			s.rows += rows.N()
			for i := range rows.N() {
				for k, x := range rows.Row(i) {
					s.sums[k] += float64(x) * float64(x)
				}
			}
			all[part] = s
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cache, err := kv.New(b.Model.Config().KV(), kv.Options{Type: kv.F16, Blocks: 4, BlockLen: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	seq := cache.Open(nil)
	defer seq.Release()
	if err := seq.Grow(len(tokens)); err != nil {
		t.Fatal(err)
	}
	var batch Batch
	batch.Add(seq, 0, len(tokens), tokens...)
	if err := b.Model.Forward(&batch, cache); err != nil {
		t.Fatal(err)
	}
	return all, f
}

func TestAnObserverSeesTheRowsOfEveryMatrix(t *testing.T) {
	sweep.NoEmulator(t)
	tokens := make([]int32, 70) // more than a shard
	for i := range tokens {
		tokens[i] = int32(3*i + 5)
	}
	for _, name := range []string{"lutra-tiny-s", "lutra-tiny-moe"} {
		all, f := observe(t, name, tokens)
		rows := map[string]int{}
		for part, s := range all {
			rows[part.Tensor] += s.rows
		}
		want := map[string]int{}
		arch, _ := f.Metadata.String("general.architecture")
		for i := range f.Tensors {
			switch x := &f.Tensors[i]; {
			case len(x.Dims) == 3:
				chosen, _ := f.Metadata.Int(arch + ".expert_used_count")
				want[x.Name] = chosen * len(tokens)
			case len(x.Dims) == 2: // token_embd.weight is the output's too
				want[x.Name] = len(tokens)
			}
		}
		if !maps.Equal(rows, want) {
			t.Errorf("%s: rows %v, want %v", name, rows, want)
		}
	}
}

func TestAnObserverSeesNormedEmbeddingsInTheFirstLayer(t *testing.T) {
	sweep.NoEmulator(t)
	tokens := []int32{7, 7, 12, 250, 31}
	all, f := observe(t, "lutra-tiny-s", tokens)
	table, norm := f.Tensor("token_embd.weight"), f.Tensor("blk.0.attn_norm.weight")
	w := make([]float32, norm.Len())
	if err := norm.Dequantize(w, 0); err != nil {
		t.Fatal(err)
	}
	arch, _ := f.Metadata.String("general.architecture")
	eps, _ := f.Metadata.Float(arch + ".attention.layer_norm_rms_epsilon")
	want, row := make([]float64, len(w)), make([]float32, len(w))
	for _, token := range tokens {
		if err := table.Dequantize(row, int(token)*len(w)); err != nil {
			t.Fatal(err)
		}
		mean := eps
		for _, x := range row {
			mean += float64(x) * float64(x) / float64(len(row))
		}
		for k, x := range row {
			want[k] += float64(x) * float64(x) / mean * float64(w[k]) * float64(w[k])
		}
	}
	for _, name := range []string{"attn_q", "attn_k", "attn_v"} {
		got := all[MatrixPart{Tensor: "blk.0." + name + ".weight", Matrices: 1}]
		for k := range want {
			if got.rows != len(tokens) || math.Abs(got.sums[k]-want[k]) > 1e-5*want[k] {
				t.Fatalf("%s: column %d of %d rows has %v, want %v", name, k, got.rows, got.sums[k], want[k])
			}
		}
	}
}
