package template

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPublishedTemplatesRenderAsTransformersRendersThem(t *testing.T) {
	dir := os.Getenv("LUTRA_GOLDEN")
	if dir == "" {
		t.Skip("LUTRA_GOLDEN does not name the folder of reference data")
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "templates", "*.jinja"))
	if len(paths) == 0 {
		t.Fatal("no templates")
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".jinja")
		t.Run(name, func(t *testing.T) { renderCases(t, strings.TrimSuffix(path, ".jinja")) })
	}
}

func renderCases(t *testing.T, base string) {
	src, err := os.ReadFile(base + ".jinja")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		BOS   string `json:"bos_token"`
		EOS   string `json:"eos_token"`
		Cases []struct {
			Conversation string
			Messages     []Message
			Tools        []json.RawMessage
			Prompt       bool `json:"add_generation_prompt"`
			Rendered     string
			Error        string
			Tolerant     *string `json:"rendered_tolerant"` // what a lenient sandbox renders where transformers fails
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	tmpl, err := Parse(string(src))
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, c := range golden.Cases {
		in := Input{
			Messages: c.Messages, AddGenerationPrompt: c.Prompt, BOS: golden.BOS, EOS: golden.EOS,
			Now: time.Date(2026, 8, 18, 9, 30, 0, 0, time.UTC),
		}
		for _, tool := range c.Tools {
			in.Tools = append(in.Tools, tool)
		}
		got, err := tmpl.Render(t.Context(), in)
		switch {
		case c.Error != "" && c.Tolerant == nil:
			raised := (*RaisedError)(nil)
			if err == nil {
				t.Errorf("%s: rendered %q, want the error %q", c.Conversation, got, c.Error)
				continue
			}
			if message, ok := strings.CutPrefix(c.Error, "TemplateError: "); ok && (!errors.As(err, &raised) || raised.Message != message) {
				t.Errorf("%s: error %v, want the template's own %q", c.Conversation, err, message)
				continue
			}
		default:
			want := c.Rendered
			if c.Tolerant != nil {
				want = *c.Tolerant
			}
			if err != nil || got != want {
				t.Errorf("%s: Render = %q, %v\nwant %q", c.Conversation, got, err, want)
				continue
			}
		}
		passed++
	}
	t.Logf("%d of %d cases", passed, len(golden.Cases))
}
