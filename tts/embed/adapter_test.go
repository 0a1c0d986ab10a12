package embed

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/tts"
)

func TestReadersWithAdaptersGiveWhatPEFTGives(t *testing.T) {
	type golden struct {
		Vectors [][]float32
		Scores  []float64
	}
	all := read[map[string]golden](t, "lora")
	for name, want := range all {
		cases := read[struct {
			Texts []struct{ Text string }
			Pairs []struct{ Query, Document string }
		}](t, name)
		path := filepath.Join("testdata", "reference", name+".gguf")
		adapted := func(change func(*gguf.File)) (*models.Bundle, *tts.Model) {
			b, m := run(t, path, true, change)
			a, err := b.LoadAdapter("law", filepath.Join("testdata", "reference", "lora", name), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { a.Close() })
			with, err := m.With(models.Use{Adapter: a, Scale: 1})
			if err != nil {
				t.Fatal(err)
			}
			return b, with
		}
		_, m := adapted(func(f *gguf.File) {
			arch, _ := f.Metadata.String("general.architecture")
			f.Metadata[arch+".pooling_type"] = uint32(models.PoolingMean)
			f.Tensors = slices.DeleteFunc(f.Tensors, func(t gguf.Tensor) bool { return len(t.Name) > 4 && t.Name[:4] == "cls." })
		})
		e, err := NewEmbedder(m)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want.Vectors {
			got, _, err := e.Embed(context.Background(), &Request{Texts: []tts.Prompt{{Text: cases.Texts[i].Text}}})
			if err != nil {
				t.Fatal(err)
			}
			for k := range v {
				if d := math.Abs(float64(got[0][k] - v[k])); !(d < 1e-4) {
					t.Fatalf("%s: %q: element %d differs by %.3g", name, cases.Texts[i].Text, k, d)
				}
			}
		}
		b, m := adapted(func(f *gguf.File) {
			if name == "qwen3" { // a plain conversion of a reranker
				delete(f.Metadata, "qwen3.pooling_type")
				f.Metadata["general.name"], f.Metadata["tokenizer.ggml.add_eos_token"] = "Qwen3 Reranker 0.6B", false
				f.Tensors = slices.DeleteFunc(f.Tensors, func(t gguf.Tensor) bool { return t.Name == "cls.output.weight" })
			}
		})
		r, err := NewRanker(m, b.Rerank, b.Classifier)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cases.Pairs {
			got, _, err := r.Score(context.Background(), []Pair{{c.Query, c.Document}})
			if d := math.Abs(float64(got[0]) - want.Scores[i]); err != nil || !(d < 1e-4) {
				t.Errorf("%s: %.30q and %.30q have the score %v, want %v, %v", name, c.Query, c.Document, got, want.Scores[i], err)
			}
		}
	}
}

// read reads testdata/reference/NAME.json.
func read[T any](t *testing.T, name string) (x T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "reference", name+".json"))
	if err == nil {
		err = json.Unmarshal(raw, &x)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}
