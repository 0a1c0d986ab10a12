package commands

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

// inParts are the names and contents of an embedded model in three files; the
// embedding, whose rows are read while it answers, is in the last.
func inParts(t *testing.T) (names []string, files [][]byte) {
	t.Helper()
	f, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	tensors := slices.Clone(f.Tensors)
	slices.SortStableFunc(tensors, func(a, b gguf.Tensor) int {
		return b2i(a.Name == "token_embd.weight") - b2i(b.Name == "token_embd.weight")
	})
	for i := range 3 {
		md := gguf.Metadata{"split.no": uint16(i), "split.count": uint16(3), "split.tensors.count": int32(len(tensors))}
		if i == 0 {
			maps.Copy(md, f.Metadata)
		}
		var raw bytes.Buffer
		if err := gguf.Write(&raw, md, tensors[i*len(tensors)/3:(i+1)*len(tensors)/3]); err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("tiny-Q8_0-%05d-of-00003.gguf", i+1))
		files = append(files, raw.Bytes())
	}
	return names, files
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// splitModel is the path of the first part of such a model.
func splitModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	names, files := inParts(t)
	for i, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), files[i], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, names[0])
}

func TestAModelInPartsHasTheLogitsOfOneFile(t *testing.T) {
	model, dir := splitModel(t), t.TempDir()
	tokens := filepath.Join(dir, "ids")
	if err := os.WriteFile(tokens, []byte("1022 286 10 258 273 111 300 301"), 0o600); err != nil {
		t.Fatal(err)
	}
	logits := func(model string) []byte {
		out := filepath.Join(dir, "out.f32")
		mustLutra(t, "logits", "--model", model, "--tokens", tokens, "--out", out)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if !bytes.Equal(logits(model), logits("lutra-tiny-s")) {
		t.Error("the logits differ from those of the whole file")
	}
}
