package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saved is a directory that transformers has saved.
func saved(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../models/testdata/huggingface", name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// logitsOf are those of a model after a few tokens.
func logitsOf(t *testing.T, model string) []byte {
	t.Helper()
	dir := t.TempDir()
	tokens, out := filepath.Join(dir, "ids"), filepath.Join(dir, "out.f32")
	if err := os.WriteFile(tokens, []byte("1 10 22 33 40"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustLutra(t, "logits", "--model", model, "--tokens", tokens, "--out", out)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestADirectoryIsConvertedToAFileThatAnswersAsItDoes(t *testing.T) {
	dir, out := saved(t, "qwen2"), filepath.Join(t.TempDir(), "qwen2.gguf")
	if said := mustLutra(t, "convert", dir, "-o", out); !strings.HasPrefix(said, out+": 27 tensors, ") {
		t.Errorf("convert said %q", said)
	}
	if !bytes.Equal(logitsOf(t, dir), logitsOf(t, out)) {
		t.Error("the file has other logits than the directory")
	}
	if said := mustLutra(t, "info", dir); !strings.Contains(said, "safetensors, 27 tensors") || !strings.Contains(said, "qwen2.embedding_length") {
		t.Errorf("info says %q", said)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); err != nil || len(left) != 1 {
		t.Errorf("beside the file is %v, %v", left, err)
	}
}

func TestWhatCannotBeConvertedLeavesNoFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.gguf")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{saved(t, "llama")}, "-o FILE is required"},
		{[]string{saved(t, "llama"), "-o", out, "--type", "Q4_K"}, `"Q4_K" is none of auto, F16`},
		{[]string{saved(t, "llama"), "-o", out, "--type", "TQ2_0"}, "no matrix is ternary"},
		{[]string{t.TempDir(), "-o", out}, "neither a GGUF file in it nor a config.json"},
		{[]string{splitModel(t), "-o", out}, "no directory with a config.json"},
		{[]string{filepath.Join(saved(t, "llama"), "model.safetensors"), "-o", out}, "a safetensors file; name its directory"},
	} {
		if _, err := lutra(t, append([]string{"convert"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("convert %v gave %v, want an error that says %q", c.args, err, c.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); err != nil || len(left) != 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}

func TestARepositoryOfSafetensorsIsAModel(t *testing.T) {
	h, dir := withHub(t), saved(t, "qwen3")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		h.Put("acme/Qwen3-0.6B", f.Name(), raw)
	}
	if !bytes.Equal(logitsOf(t, "hf:acme/Qwen3-0.6B"), logitsOf(t, dir)) {
		t.Error("the repository has other logits than the directory")
	}
	if said := mustLutra(t, "list"); !strings.Contains(said, "hf:acme/Qwen3-0.6B") {
		t.Errorf("list says %q", said)
	}
	if said := mustLutra(t, "info", "hf:acme/Qwen3-0.6B"); !strings.Contains(said, "Qwen3-0.6B") || strings.Contains(said, "snapshots") && !strings.Contains(said, "general.name") {
		t.Errorf("info says %q", said)
	}
	out := filepath.Join(t.TempDir(), "qwen3.gguf")
	mustLutra(t, "convert", "hf:acme/Qwen3-0.6B", "-o", out)
	if !bytes.Equal(logitsOf(t, out), logitsOf(t, dir)) {
		t.Error("the file has other logits than the directory")
	}
}

func TestADirectoryIsServedUnderItsName(t *testing.T) {
	s := serving(t, "--addr", "127.0.0.1:0", "--model", saved(t, "mistral"))
	names := s.models(t)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 || names[0] != "mistral" {
		t.Errorf("models %q", names)
	}
}
