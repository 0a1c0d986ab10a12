package embed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/tts"
)

// overflow makes the last norm of a file so large that what it makes is infinite.
func overflow(suffix string) func(*gguf.File) {
	return func(f *gguf.File) {
		for i := range f.Tensors {
			if m := &f.Tensors[i]; strings.HasSuffix(m.Name, suffix) {
				m.Data = bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(3e38)), m.Len())
			}
		}
	}
}

func TestAVectorOrScoreThatIsNotFiniteIsTheModelsFault(t *testing.T) {
	for _, pooling := range []models.Pooling{models.PoolingMean, models.PoolingFirst, models.PoolingLast} {
		_, m := run(t, filepath.Join("testdata", "bert.gguf"), false, func(f *gguf.File) {
			f.Metadata["bert.pooling_type"] = uint32(pooling)
			overflow("layer_output_norm.weight")(f)
		})
		e, err := NewEmbedder(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, dimensions := range []int{0, 1} {
			vectors, _, err := e.Embed(t.Context(), &Request{Texts: []tts.Prompt{{Text: "a text"}}, Dimensions: dimensions})
			if !errors.Is(err, models.ErrNotFinite) {
				t.Errorf("pooling %d: %v, %v, want ErrNotFinite", pooling, vectors, err)
			}
		}
		if scores, _, err := e.Score(t.Context(), []Pair{{"one", "another"}}); !errors.Is(err, models.ErrNotFinite) {
			t.Errorf("pooling %d: scores %v, %v, want ErrNotFinite", pooling, scores, err)
		}
	}
	bundle, m := run(t, filepath.Join("testdata", "reference", "bert.gguf"), false, overflow("layer_output_norm.weight"))
	r, err := NewRanker(m, bundle.Rerank, bundle.Classifier)
	if err != nil {
		t.Fatal(err)
	}
	if scores, _, err := r.Score(t.Context(), []Pair{{"one", "another"}}); !errors.Is(err, models.ErrNotFinite) {
		t.Errorf("a ranker's scores %v, %v, want ErrNotFinite", scores, err)
	}
}
