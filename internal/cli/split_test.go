package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
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

func TestAModelInPartsAnswersAsItDoesInOneFile(t *testing.T) {
	model := splitModel(t)
	ask := func(model string) string {
		return mustLutra(t, "ask", "--model", model, "--seed", "1", "What is 12 * 7?")
	}
	if got, want := ask(model), ask("lutra-tiny-s"); got != want {
		t.Errorf("it answers %q, want %q", got, want)
	}
	if got := mustLutra(t, "info", model); !strings.Contains(got, " in 3 parts, ") || strings.Contains(got, "split.") {
		t.Errorf("info says %.200s", got)
	}
	s := serving(t, "--addr", "127.0.0.1:0", "--model", model)
	resp, err := http.Get(s.base + "/v1/models/tiny-Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("it is not served as tiny-Q8_0: %s", resp.Status)
	}
}

func TestAModelOfTheHubInPartsIsOneModel(t *testing.T) {
	h := hubtest.New(t)
	names, files := inParts(t)
	for i, name := range names {
		h.Put("acme/Big-GGUF", name, files[i])
	}
	for key, v := range hubEnvironment(t, h) {
		t.Setenv(key, v)
	}
	const name = "hf:acme/Big-GGUF:Q8_0"
	path := strings.TrimSpace(mustLutra(t, "pull", name))
	if filepath.Base(path) != names[0] {
		t.Errorf("pull prints %s", path)
	}
	if got := mustLutra(t, "info", name); !strings.Contains(got, " in 3 parts, ") {
		t.Errorf("info says %.200s", got)
	}
	var list []storedModel
	if err := json.Unmarshal([]byte(mustLutra(t, "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if size := len(files[0]) + len(files[1]) + len(files[2]); len(list) != 1 || list[0].Bytes != int64(size) || list[0].Parts != 3 || list[0].Path != path {
		t.Errorf("list = %+v, want one of %d bytes in 3 parts", list, size)
	}
	if got := mustLutra(t, "ask", "--model", name, "--seed", "1", "What is 12 * 7?"); !strings.Contains(got, "84") {
		t.Errorf("it answers %q", got)
	}
	mustLutra(t, "rm", name)
	if got := mustLutra(t, "list"); strings.Contains(got, "Big") {
		t.Errorf("after rm there is %s", got)
	}
}
