package bench

import (
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestARandomModelHasTheLayersThatWereAskedFor(t *testing.T) {
	for layers, want := range map[int]int{0: 3, 1: 1, 5: 5} {
		path, o := filepath.Join(t.TempDir(), "m.gguf"), DefaultModelOptions()
		o.Shape, o.Layers = "tiny", layers
		if err := WriteModel(path, o); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := f.Metadata.Int("llama.block_count"); got != want {
			t.Errorf("with Layers %d the model has %d layers, want %d", layers, got, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
