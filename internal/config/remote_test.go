package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub"
)

func TestNamesOfTheHubBecomeFilesAndKeepTheirNames(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("qwen3-4b", []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := writeConfig(t, `
models:
  - path: bonsai-1.7b
    draft: qwen3-0.6b
  - path: hf:microsoft/bitnet-b1.58-2B-4T-gguf
    draft: none
  - {name: mine, path: "hf:acme/Tiny-GGUF:Q8_0"}
  - path: qwen3-4b          # a file, which comes first
  - embedded: lutra-tiny-s
verifiers:
  - path: rlhflow-prm-8b
  - {path: hf:acme/PRM, format: math-shepherd}
engine:
  draft_model: smollm2-360m
`)
	c, err := Load(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	err = c.Get(t.Context(), func(_ context.Context, r hub.Ref) (string, error) {
		asked = append(asked, r.String())
		return "/cache/" + r.Repo, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Model{
		{Name: "bonsai-1.7b", Path: "/cache/Bonsai-1.7B-gguf", Draft: "/cache/Qwen3-0.6B-GGUF"},
		{Name: "bitnet-b1.58-2B-4T", Path: "/cache/bitnet-b1.58-2B-4T-gguf", Draft: "none"},
		{Name: "mine", Path: "/cache/Tiny-GGUF"},
		{Path: "qwen3-4b"},
		{Embedded: "lutra-tiny-s"},
	} {
		if got := c.Models[i]; got.Name != want.Name || got.Path != want.Path || got.Embedded != want.Embedded || got.Draft != want.Draft {
			t.Errorf("models[%d] = %+v, want %+v", i, got, want)
		}
	}
	if v := c.Verifiers; v[0].Name != "rlhflow-prm-8b" || v[0].Path != "/cache/Llama3.1-8B-PRM-Deepseek-Data-GGUF" || v[0].Format != "rlhflow" || v[1].Name != "PRM" || v[1].Format != "math-shepherd" {
		t.Errorf("verifiers %+v", v)
	}
	if c.Engine.DraftModel != "/cache/SmolLM2-360M-Instruct-GGUF" || len(asked) != 7 {
		t.Errorf("draft model %q after asking for %q", c.Engine.DraftModel, asked)
	}
}

func TestADraftThatIsNotUsedIsNotDownloaded(t *testing.T) {
	c, err := Load(writeConfig(t, "engine: {draft_model: bonsai-1.7b, speculation: off}"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), func(context.Context, hub.Ref) (string, error) { return "", errors.New("asked for") }); err != nil {
		t.Error(err)
	}
}

func TestAModelThatCannotBeHadIsNamed(t *testing.T) {
	failure := errors.New("no such thing")
	none := func(context.Context, hub.Ref) (string, error) { return "", failure }
	for _, text := range []string{"models: [{path: bonsai-1.7b}]", "models: [{embedded: lutra-tiny-s, draft: bonsai-1.7b}]", "engine: {draft_model: bonsai-1.7b}", "verifiers: [{path: bonsai-1.7b}]"} {
		c, err := Load(writeConfig(t, text), nil, nil)
		if err == nil {
			err = c.Get(t.Context(), none)
		}
		if !errors.Is(err, failure) || !strings.Contains(err.Error(), "model bonsai-1.7b") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNamesOfTheHubAreHeldAgainstTheirFormAtOnce(t *testing.T) {
	for _, text := range []string{"models: [{path: hf:acme}]", `models: [{path: "hf:acme/../x"}]`, `verifiers: [{path: "hf:acme/Tiny:../x.gguf"}]`} {
		if _, err := Load(writeConfig(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), "path") || !strings.Contains(err.Error(), "hf:") && !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if m, err := ModelFlag("hf:acme/Tiny:a=b.gguf"); err != nil || m.Name != "" || m.Path != "hf:acme/Tiny:a=b.gguf" {
		t.Errorf("ModelFlag = %+v, %v", m, err)
	}
	if _, err := ModelFlag(filepath.Join(t.TempDir(), "x.gguf")); err == nil || !strings.Contains(err.Error(), "lutra list --catalogue") {
		t.Errorf("ModelFlag of nothing = %v", err)
	}
}
