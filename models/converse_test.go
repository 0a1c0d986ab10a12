package models

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/template"
)

func TestModelsWithoutATemplateConverse(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	chatML, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	chatML.Metadata = maps.Clone(chatML.Metadata)
	delete(chatML.Metadata, "tokenizer.chat_template")
	base := altered(t, func(md gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
		md["tokenizer.ggml.add_bos_token"] = true
		return ts
	})
	for _, c := range []struct {
		file  *gguf.File
		want  string
		stops []string
		warns string
	}{
		{chatML, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", nil, "ChatML"},
		{base, "<|bos|>System: Be brief.\n\nUser: Hi\n\nAssistant:", []string{"\nUser:"}, "plain dialogue"},
	} {
		b, err := LoadFile(c.file, LoadOptions{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		bos, _ := b.Tokenizer.BOS()
		got, err := b.Template.Render(t.Context(), template.Input{
			Messages:            []template.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Hi"}},
			AddGenerationPrompt: true, BOS: b.Tokenizer.Token(bos),
		})
		if err != nil || got != c.want || !slices.Equal(b.Stops, c.stops) {
			t.Errorf("a conversation is written as %q, %v and ends at %q; want %q, %q", got, err, b.Stops, c.want, c.stops)
		}
		if !slices.ContainsFunc(b.Warnings, func(w string) bool { return strings.Contains(w, c.warns) }) {
			t.Errorf("warnings %q do not speak of %s", b.Warnings, c.warns)
		}
	}
	with := openEmbedded(t, "lutra-tiny-s")
	if len(with.Warnings) > 0 || len(with.Stops) > 0 {
		t.Errorf("a model with a template warns %q and stops at %q", with.Warnings, with.Stops)
	}
}
