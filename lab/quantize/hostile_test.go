package quantize

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/lutra-lm/lutra/internal/mutate"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/gguf"
)

// hostileImportance returns what quantises a file by importances like good ones.
func hostileImportance(t testing.TB) func(t *testing.T, choices []byte) {
	t.Helper()
	whole := gguf.Tensor{Name: "blk.0.ffn_down_exps.weight", Type: gguf.F32, Dims: []int{32, 2, 3}, Data: make([]byte, 4*32*2*3)}
	var b bytes.Buffer
	if err := gguf.Write(&b, gguf.Metadata{"general.architecture": "llama"}, []gguf.Tensor{whole}); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	good := &gguf.File{Metadata: gguf.Metadata{"general.type": "imatrix", keyDatasets: []string{"text"}, keyChunks: uint32(3), keyChunkSize: uint32(8)}, Tensors: []gguf.Tensor{
		{Name: whole.Name + sumsOf, Type: gguf.F32, Dims: []int{32, 3}, Data: floatBytes(make([]float32, 96))},
		{Name: whole.Name + countsOf, Type: gguf.F32, Dims: []int{1, 3}, Data: floatBytes([]float32{1, 0, 2})},
	}}
	path := filepath.Join(t.TempDir(), "imatrix.gguf")
	return func(t *testing.T, choices []byte) {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("%x: panic: %v\n%s", choices, p, debug.Stack())
			}
		}()
		if err := os.WriteFile(path, mutate.GGUF(good, nil, mutate.New(choices)), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := OpenImportance(path)
		if err != nil {
			return
		}
		defer m.Close()
		plan, err := NewPlan(file, Options{Type: named(t, "Q4_0"), Pure: true, Importance: m})
		if err == nil {
			_ = plan.Write(t.Context(), io.Discard, func(*Result) {})
		}
	}
}

func TestHostileImportancesAreRefusedOrWeigh(t *testing.T) {
	try := hostileImportance(t)
	for seed := range sweep.Of(t, 500, 5000) {
		try(t, binary.LittleEndian.AppendUint64(nil, rand.New(rand.NewPCG(uint64(seed), 0)).Uint64()))
	}
}

func FuzzHostileImportance(f *testing.F) {
	try := hostileImportance(f)
	f.Add([]byte{1})
	f.Fuzz(try)
}
