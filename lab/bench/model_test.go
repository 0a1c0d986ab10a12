package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestARandomModelHasTheLayersThatWereAskedFor(t *testing.T) {
	for layers, want := range map[int]int{0: 3, 1: 1, 5: 5} {
		path, o := filepath.Join(t.TempDir(), "m.gguf"), DefaultModelOptions()
		o.Shape, o.Layers = "tiny", layers
		size, err := WriteModel(t.Context(), path, o, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != size {
			t.Errorf("%d bytes were written to a file of %v, %v", size, info, err)
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

// endsAtOnce ends a context when something is written to it.
type endsAtOnce struct {
	bytes.Buffer
	end func()
}

func (e *endsAtOnce) Write(p []byte) (int, error) {
	e.end()
	return e.Buffer.Write(p)
}

func TestCtrlCEndsTheWritingOfAModelAndLeavesNone(t *testing.T) {
	path, o := filepath.Join(t.TempDir(), "m.gguf"), DefaultModelOptions()
	o.Shape, o.Layers = "tiny", 40 // more than a buffer
	ctx, cancel := context.WithCancel(t.Context())
	said := &endsAtOnce{end: cancel}
	if _, err := WriteModel(ctx, path, o, said); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a half-written file is left: %v", err)
	}
	if !regexp.MustCompile(`^writing m\.gguf \(\S+ MiB\)\n\S+m\.gguf: ended after \S+ .?iB of \S+ MiB; the file is removed\n$`).Match(said.Bytes()) {
		t.Errorf("it said %q", said.String())
	}
}
