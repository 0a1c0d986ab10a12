//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

// folderOf writes the embedded model lutra-tiny-s under names into a folder.
func folderOf(t *testing.T, dir string, names ...string) {
	t.Helper()
	f, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if err := gguf.Write(&raw, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name+".gguf"), raw.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// completion asks a server's model, and returns its answer.
func completion(base, model string) (status int, text string, err error) {
	resp, err := http.Post(base+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"model":%q,"prompt":"Tom has 3","max_tokens":6,"ignore_eos":true,"temperature":0}`, model)))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	var answer struct {
		Choices []struct{ Text string }
		Error   struct{ Code string }
	}
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if len(answer.Choices) == 1 {
		return resp.StatusCode, answer.Choices[0].Text, err
	}
	return resp.StatusCode, answer.Error.Code, err
}

// inMemory returns the names of the models in memory, and the bytes that they take.
func inMemory(t *testing.T, base string) (names string, total int64) {
	t.Helper()
	resp, err := http.Get(base + "/api/ps")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Models []struct {
			Name string
			Size int64
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Models {
		names += strings.TrimSuffix(m.Name, ":latest") + " "
		total += m.Size
	}
	return names, total
}

func TestModelsOfAFolderTakeTurnsInMemory(t *testing.T) {
	dir := t.TempDir()
	folderOf(t, dir, "a", "b", "c")
	if err := os.WriteFile(filepath.Join(dir, "bad.gguf"), []byte("GGUF, or not"), 0o600); err != nil {
		t.Fatal(err)
	}
	const limit = 25 << 20 // two models with a step's buffers
	s := serving(t, "--addr", "127.0.0.1:0", "--kv-mem", "1MiB", "--config", configFile(t, fmt.Sprintf("models: [{embedded: lutra-tiny-s}]\nverifiers: []\nloading: {dir: %q, memory: 25MiB, cache: false}\nlog: {format: json}", dir)))
	_, want, err := completion(s.base, "lutra-tiny-s")
	if err != nil || want == "" {
		t.Fatal(want, err)
	}
	for _, name := range []string{"a", "b", "a"} {
		if status, got, err := completion(s.base, name); err != nil || status != 200 || got != want {
			t.Errorf("%s: %d %q %v, want %q", name, status, got, err, want)
		}
		if names, total := inMemory(t, s.base); names != "lutra-tiny-s "+name+" " && names != name+" lutra-tiny-s " || total > limit || total < limit/2 {
			t.Errorf("after %s there are %sof %d bytes", name, names, total)
		}
	}
	for range 2 {
		if status, code, err := completion(s.base, "bad"); status != 503 || code != "model_load_failed" || err != nil {
			t.Errorf("a damaged file: %d %s %v", status, code, err)
		}
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			name := []string{"a", "b", "c", "lutra-tiny-s", "default"}[i%5]
			if status, got, err := completion(s.base, name); err != nil || status != 200 || got != want {
				t.Errorf("among others, %s: %d %q %v", name, status, got, err)
			}
		})
	}
	all.Wait()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestAHangupHasModelsComeAndGo(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored")
	}
	dir := t.TempDir()
	folderOf(t, dir, "old")
	s := startServe(t, "LUTRA_LOADING_DIR="+dir, "LUTRA_LOADING_CACHE=false")
	ask := func(name string, want int) {
		t.Helper()
		if status, got, err := completion(s.url, name); err != nil || status != want {
			t.Errorf("%s: %d %q %v, want %d", name, status, got, err, want)
		}
	}
	ask("old", 200)
	ask("new", 404)
	folderOf(t, dir, "new")
	if err := os.Remove(filepath.Join(dir, "old.gguf")); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGHUP)
	s.wait("reloaded")
	ask("new", 200)
	ask("old", 404)
	ask("lutra-tiny-s", 200)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGHUP)
	if line := s.wait("nothing is reloaded"); !strings.Contains(line, "LUTRA_LOADING_DIR") {
		t.Errorf("the log does not say why: %s", line)
	}
	ask("new", 200)
	s.signal(os.Interrupt)
	if status := s.ends(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
