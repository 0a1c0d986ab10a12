package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/eval"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

// loud is a model that, told to think, is asked another question.
func loud(t *testing.T) string {
	t.Helper()
	f := must(embedded.Open("lutra-tiny-s"))
	written, _ := f.Metadata.String("tokenizer.chat_template")
	f.Metadata["tokenizer.chat_template"] = "{%- if enable_thinking is defined and enable_thinking -%}" +
		strings.ReplaceAll(written, "message", "messages_are_not_here") + "{%- else -%}" + written + "{%- endif -%}"
	path := filepath.Join(t.TempDir(), "loud.gguf")
	file := must(os.Create(path))
	if err := gguf.Write(file, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnEvaluationWithoutThinkingContinues(t *testing.T) {
	dir, model := t.TempDir(), loud(t)
	args := func(thinking string) []string {
		return []string{"eval", "--model", model, "--limit", "1", "--n", "1", "--thinking", thinking, "--out", dir}
	}
	for range 2 {
		mustLutra(t, args("off")...)
	}
	if _, err := lutra(t, args("on")...); !errors.Is(err, eval.ErrSetup) {
		t.Errorf("with thinking: %v, want ErrSetup", err)
	}
	if report := string(must(os.ReadFile(filepath.Join(dir, "results.md")))); !strings.Contains(report, "thinking off") {
		t.Errorf("the report says %s", report)
	}
}

func TestThinkingIsSwitchedOnTheCommandLine(t *testing.T) {
	model := loud(t)
	ask := func(args ...string) (string, error) {
		return lutra(t, append([]string{"ask", "--model", model, "--max-tokens", "12", "What is 12 * 7?"}, args...)...)
	}
	off, err := ask("--thinking", "off")
	if err != nil || off != must(ask()) || !strings.Contains(off, "84") {
		t.Errorf("off: %q, %v", off, err)
	}
	if on, err := ask("--thinking", "on"); err == nil && on == off {
		t.Errorf("on: %q, which is the answer without", on)
	}
	if _, err := ask("--thinking", "maybe"); err == nil || !strings.Contains(err.Error(), "is none of on, off") {
		t.Errorf("maybe: %v", err)
	}
	for _, args := range [][]string{{"ask", "--thinking", "on", "Hi"}, {"eval", "--limit", "1", "--n", "1", "--thinking", "on"}} {
		if _, err := lutra(t, args...); err == nil || !strings.Contains(err.Error(), "cannot switch thinking") {
			t.Errorf("lutra %q with a model that cannot switch: %v", args, err)
		}
	}
}
