package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if _, err := lutra(t, "ask", "--thinking", "on", "Hi"); err == nil || !strings.Contains(err.Error(), "cannot switch thinking") {
		t.Errorf("a model that cannot switch: %v", err)
	}
}
