package hub

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// TestHuggingFaceHubSharesTheCache runs huggingface_hub where it is installed: on the
// cache that was filled here, and the other way round.
func TestHuggingFaceHubSharesTheCache(t *testing.T) {
	python := clienttest.Python(t, "huggingface_hub")
	download := func(t *testing.T, b *bench, file string, environment ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, "-c", "import sys; from huggingface_hub import hf_hub_download as get; print(get('"+repo+"', sys.argv[1]))", file)
		cmd.Env = append(os.Environ(), "HF_ENDPOINT="+b.server.URL, "HF_HOME="+t.TempDir(), "HF_HUB_CACHE="+b.Cache(), "HF_TOKEN=", "HF_HUB_OFFLINE=", "NO_PROXY=*", "no_proxy=*")
		cmd.Env = append(cmd.Env, environment...)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, &errOut)
		}
		return filepath.Clean(strings.TrimSpace(out.String()))
	}
	t.Run("it finds what was pulled", func(t *testing.T) {
		b := newBench(t)
		path := b.pulled(t)
		n := len(b.ranges())
		for _, environment := range []string{"HF_HUB_OFFLINE=1", "HF_HUB_OFFLINE="} {
			if got := download(t, b, tiny.File, environment); got != path {
				t.Errorf("with %s it has %s, pulled was %s", environment, got, path)
			}
		}
		if len(b.ranges()) != n {
			t.Error("it downloads what is there")
		}
	})
	t.Run("what it downloads is found", func(t *testing.T) {
		b := newBench(t)
		path := download(t, b, tiny.File)
		if found, err := b.Find(tiny); err != nil || found != path {
			t.Errorf("Find = %q, %v; it downloaded %s", found, err, path)
		}
		n := len(b.ranges())
		if pulled := b.pulled(t); pulled != path || len(b.ranges()) != n {
			t.Errorf("Pull = %s with %d requests, it downloaded %s", pulled, len(b.ranges())-n, path)
		}
		if freed, err := b.Remove(tiny); err != nil || freed < int64(len(b.file)) {
			t.Errorf("Remove = %d, %v", freed, err)
		}
	})
	t.Run("a file with holes is nothing to it", func(t *testing.T) {
		b := newBench(t)
		blob := b.folder(tiny).blob(hubtest.SHA256(b.file))
		if err := os.MkdirAll(filepath.Dir(blob), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(blob+incomplete, make([]byte, len(b.file)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(download(t, b, tiny.File)); err != nil || !bytes.Equal(got, b.file) {
			t.Errorf("it has %d bytes that differ: %v", len(got), err)
		}
	})
}
