package models

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// directories are the models of testdata/huggingface.
const directories = "testdata/huggingface"

// fromJSON reads a file of testdata/huggingface, by the name of each model.
func fromJSON[T any](t *testing.T, name string) (of map[string]T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directories, name))
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func TestDirectoriesOfTransformersGiveItsLogits(t *testing.T) {
	sweep.NoEmulator(t)
	for name, rows := range fromJSON[[][]float64](t, "logits.json") {
		t.Run(name, func(t *testing.T) {
			want := slices.Concat(rows...)
			m := openModel(t, filepath.Join(directories, name), LoadOptions{Exact: true})
			got := newRunner(t, m, kv.F32).feed(len(rows), transformersTokens()...)
			if len(got) != len(want) {
				t.Fatalf("%d logits, want %d", len(got), len(want))
			}
			worst, sum := 0.0, 0.0
			for i, x := range got {
				worst, sum = max(worst, math.Abs(float64(x)-want[i])), sum+want[i]*want[i]
			}
			scale := math.Sqrt(sum / float64(len(got)))
			t.Logf("largest difference %.2g of logits of %.2g", worst, scale)
			if !(worst < 1e-4*scale) {
				t.Errorf("a logit differs by %.3g, want less than 1e-4 of their scale, %.3g", worst, scale)
			}
		})
	}
}

func TestADirectoryThatIsChangedFailsItsModel(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(directories, "llama"))); err != nil {
		t.Fatal(err)
	}
	p := pool.New(1)
	defer p.Close()
	b, err := Load(dir, LoadOptions{Pool: p})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	digest, err := b.Identity.Digest(t.Context(), func(context.Context) (func(), error) { return func() {}, nil })
	if err != nil || len(digest) != 64 || b.Name != filepath.Base(dir) {
		t.Errorf("%s has the digest %q, %v", b.Name, digest, err)
	}
	weights := filepath.Join(dir, "model.safetensors")
	if err := os.Truncate(weights, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Identity.Digest(t.Context(), func(context.Context) (func(), error) { return func() {}, nil }); err != nil {
		t.Errorf("the digest is computed once, and not again: %v", err)
	}
	if err := b.file.Unchanged(); !errors.Is(err, gguf.ErrChanged) {
		t.Errorf("after a change of %s: %v", weights, err)
	}
}
