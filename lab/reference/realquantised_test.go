package reference

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/lab/quantize"
	"github.com/lutra-lm/lutra/models/gguf"
)

func TestAPublicModelIsQuantisedToTheBytesOfLlamaCpp(t *testing.T) {
	path := realModel(t, "smollm2.gguf")
	var want map[string]string
	recorded(t, "quantised.json", &want)
	if len(want) < 13 {
		t.Fatalf("digests of %d types", len(want))
	}
	for typ, digest := range want {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			f := quantisedAs(t, path, typ)
			slices.SortFunc(f.Tensors, func(a, b gguf.Tensor) int { return cmp.Compare(a.Name, b.Name) })
			h := sha256.New()
			for i := range f.Tensors {
				hashTensor(t, h, &f.Tensors[i])
			}
			if got := hex.EncodeToString(h.Sum(nil)); got != digest {
				t.Errorf("the tensors' digest is %s, want %s", got, digest)
			}
		})
	}
}

// quantisedAs returns some layers of the model in path as a file type, in memory.
func quantisedAs(t testing.TB, path, typ string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opt := quantize.Options{Requantize: true}
	var ok bool
	if opt.Type, ok = quantize.FileTypeNamed(typ); !ok {
		t.Fatalf("there is no type %s", typ)
	}
	plan, err := quantize.NewPlan(f, opt)
	if err != nil {
		t.Fatal(err)
	}
	plan.Tensors = slices.DeleteFunc(plan.Tensors, func(p quantize.Planned) bool { // as make.py
		return !strings.HasPrefix(p.Name, "blk.0.") && !strings.HasPrefix(p.Name, "blk.7.") && !strings.HasPrefix(p.Name, "blk.29.")
	})
	var out bytes.Buffer
	if err := plan.Write(t.Context(), &out, func(*quantize.Result) {}); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// hashTensor adds a tensor's name, type and bytes.
func hashTensor(t testing.TB, h hash.Hash, tensor *gguf.Tensor) {
	t.Helper()
	h.Write([]byte(tensor.Name + tensor.Type.String()))
	loaded, err := tensor.Load(0, tensor.Rows(), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Write(loaded.Data)
}
