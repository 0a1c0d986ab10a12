package models_test

import (
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

func TestWhatAModelWouldTakeIsWhatItTakesOnceLoaded(t *testing.T) {
	sweep.Full(t)
	p := pool.New(1)
	defer p.Close()
	open := map[string]func() (*gguf.File, error){}
	for _, e := range embedded.Models() {
		open[e.Name] = func() (*gguf.File, error) { return embedded.Open(e.Name) }
	}
	files, err := filepath.Glob("testdata/transformers/*.gguf")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range files {
		open[path] = func() (*gguf.File, error) { return gguf.Open(path) }
	}
	for name, open := range open {
		for _, packing := range []string{"", "stored"} {
			f, err := open()
			if err != nil {
				t.Fatal(err)
			}
			got, err := models.Measure(f, models.LoadOptions{Packing: packing})
			if err != nil {
				t.Errorf("%s: Measure: %v", name, err)
				continue
			}
			b, err := models.LoadFile(f, models.LoadOptions{Pool: p, Packing: packing})
			if err != nil {
				t.Fatal(err)
			}
			want := b.Model.Config()
			if d := got.Bytes - want.Bytes; d < -want.Bytes/4 || d > want.Bytes/4 { // tiny matrices are padded, and latent attention has some twice
				t.Errorf("%s, %q: %d bytes, want about %d", name, packing, got.Bytes, want.Bytes)
			}
			if got.KV() != want.KV() || got.Context != want.Context || got.Pooling != models.PoolingNone != (want.Pooling != models.PoolingNone) || got.Arch != want.Arch || got.Vocab != want.Vocab {
				t.Errorf("%s: %+v, want %+v", name, got.Config, want)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
