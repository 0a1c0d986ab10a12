package models

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// pooled copies a model with that pooling in its file, and gives its output matrix,
// [Vocab][Hidden].
func pooled(t *testing.T, ref reference, p Pooling, more ...gguf.Tensor) (path string, head []float32) {
	t.Helper()
	f, err := gguf.Open(filepath.Join(ref.dir, "model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	arch, _ := f.Metadata.String("general.architecture")
	f.Metadata[arch+".pooling_type"] = uint32(p)
	path = filepath.Join(t.TempDir(), "model.gguf")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := gguf.Write(out, f.Metadata, append(f.Tensors, more...)); err != nil {
		t.Fatal(err)
	}
	matrix := f.Tensor("output.weight")
	if matrix == nil {
		matrix = f.Tensor("token_embd.weight")
	}
	head = make([]float32, matrix.Rows()*int(matrix.Dims[0]))
	if err := matrix.Dequantize(head, 0); err != nil {
		t.Fatal(err)
	}
	return path, head
}

func TestHiddenStatesGiveTheLogitsOfAnIndependentForwardPass(t *testing.T) {
	sweep.NoEmulator(t)
	for _, ref := range references(t) {
		if s := ref.String(); strings.Contains(s, "gemma2") || strings.Contains(s, "q1_0") || strings.Contains(s, "q2_0") {
			continue // logits are capped, or the head is turned
		}
		t.Run(ref.String(), func(t *testing.T) {
			g, want := readGolden(t, ref)
			path, head := pooled(t, ref, PoolingLast)
			m := openModel(t, path, LoadOptions{Exact: true, Context: ref.context})
			c := m.Config()
			if c.Generates() || c.Outputs != c.Hidden || c.Pooling != PoolingLast {
				t.Fatalf("config %+v, want a model that embeds", c)
			}
			states := newRunner(t, m, kv.F32).feed(len(g.Tokens), g.Tokens...)
			got := make([]float32, len(want))
			for i := range got {
				x, w := states[i/g.Vocab*c.Hidden:], head[i%g.Vocab*c.Hidden:]
				sum := 0.0
				for k := range c.Hidden {
					sum += float64(x[k]) * float64(w[k])
				}
				got[i] = float32(sum)
			}
			if e := nmse(got, want); !(e <= g.Tolerance.Strict) {
				t.Errorf("NMSE %.3g, want at most %.3g", e, g.Tolerance.Strict)
			}
		})
	}
}

func TestARankHeadOfTwoTokensGivesTheirLogits(t *testing.T) {
	sweep.NoEmulator(t)
	const yes, no = 17, 200 // as in a converted Qwen3-Reranker, whose words these are
	for _, ref := range references(t) {
		if !strings.Contains(ref.String(), "llama3-rope") && ref.String() != "qwen3" {
			continue
		}
		g, want := readGolden(t, ref)
		_, head := pooled(t, ref, PoolingLast)
		hidden := len(head) / g.Vocab
		rows := slices.Concat(head[yes*hidden:(yes+1)*hidden], head[no*hidden:(no+1)*hidden])
		path, _ := pooled(t, ref, poolingRank, gguf.Tensor{Name: "cls.output.weight", Type: gguf.F32, Dims: []int{hidden, 2}, Data: bytesOf(rows)})
		got := newRunner(t, openModel(t, path, LoadOptions{Exact: true}), kv.F32).feed(1, g.Tokens...)
		last := want[len(want)-g.Vocab:]
		if e := nmse(got, []float32{last[yes], last[no]}); len(got) != 2 || !(e <= 1e-9) {
			t.Errorf("%v: %v, want %v and %v", ref, got, last[yes], last[no])
		}
	}
}
