package engines

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// ranking is the path of a model with a rank head, and with what it reads if template is
// not empty.
func ranking(t *testing.T, template string) string {
	t.Helper()
	f, err := gguf.Open(randomModel(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Metadata["llama.pooling_type"] = uint32(4)
	if template != "" {
		f.Metadata["tokenizer.chat_template.rerank"] = template
	}
	hidden, _ := f.Metadata.Int("llama.embedding_length")
	var head []byte
	for i := range 2 * hidden {
		head = binary.LittleEndian.AppendUint32(head, math.Float32bits(float32(math.Sin(float64(i)))))
	}
	path := filepath.Join(t.TempDir(), "ranker.gguf")
	out, err := os.Create(path)
	if err == nil {
		err = gguf.Write(out, f.Metadata, append(f.Tensors, gguf.Tensor{Name: "cls.output.weight", Type: gguf.F32, Dims: []int{hidden, 2}, Data: head}))
	}
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestModelsThatReadAreServedForWhatTheyDo(t *testing.T) {
	var golden []struct {
		Text string
		Mean []float32
	}
	raw, err := os.ReadFile("../../tts/embed/testdata/bert.json")
	if err == nil {
		err = json.Unmarshal(raw, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Models = []config.Model{{Path: "../../tts/embed/testdata/bert.gguf"}, {Path: ranking(t, "Query: {query}\nDocument: {document}\n")}}
	cfg.Verifiers = nil
	cfg.KV.Memory = "8MiB"
	err = With(t.Context(), cfg, zerolog.Nop(), func(ctx context.Context, r *Runtime) error {
		bert, ranker := r.Hosts[0], r.Hosts[1]
		for _, c := range golden {
			vectors, _, err := bert.Embed.Embed(ctx, &embed.Request{Texts: []tts.Prompt{{Text: c.Text}}})
			if err != nil {
				return err
			}
			for i, x := range c.Mean {
				if d := math.Abs(float64(vectors[0][i] - x)); !(d <= 1e-5) {
					t.Fatalf("%q: element %d differs by %v", c.Text, i, d)
				}
			}
		}
		pairs := []embed.Pair{{Query: "a", Document: "b"}, {Query: "a", Document: "c"}, {Query: "a", Document: "b"}}
		scores, read, err := ranker.Rank.Score(ctx, pairs)
		if err != nil || read == 0 || scores[0] != scores[2] || scores[0] == scores[1] || scores[0] <= 0 || scores[0] >= 1 || ranker.Embed != nil || bert.Rank == nil {
			t.Errorf("scores %v of %d tokens, %v", scores, read, err)
		}
		if err := r.Writes(); err == nil || !strings.Contains(err.Error(), "bert: it writes no text") {
			t.Errorf("Writes() = %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Models = []config.Model{{Path: ranking(t, "")}}
	if _, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{}); err == nil || !strings.Contains(err.Error(), "a reward model scores text") {
		t.Errorf("a rank head that says not what it reads: %v", err)
	}
	cfg.Models = []config.Model{{Path: ranking(t, "Query: {query}\n")}}
	if _, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{}); err == nil || !strings.Contains(err.Error(), "has no {document}") {
		t.Errorf("a rerank template without a document: %v", err)
	}
}

// plainReranker is the path of a conversion of Qwen3-Reranker that knows nothing of rerankers.
func plainReranker(t *testing.T) string {
	t.Helper()
	f, err := gguf.Open("../../tts/embed/testdata/reference/qwen3.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	delete(f.Metadata, "qwen3.pooling_type")
	f.Metadata["general.name"], f.Metadata["tokenizer.ggml.add_eos_token"] = "Qwen3 Reranker 0.6B", false
	tensors := slices.DeleteFunc(f.Tensors, func(t gguf.Tensor) bool { return t.Name == "cls.output.weight" })
	path := filepath.Join(t.TempDir(), "plain.gguf")
	out, err := os.Create(path)
	if err == nil {
		err = gguf.Write(out, f.Metadata, tensors)
	}
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRerankersOfAllKindsAreServedAsSuch(t *testing.T) {
	cfg := config.Default()
	cfg.Models, cfg.Verifiers = nil, nil
	cfg.KV.Memory = "16MiB"
	const folder = "../../tts/embed/testdata/reference/"
	names := []string{"bert", "xlm-roberta", "modern-bert"}
	for _, name := range names {
		cfg.Models = append(cfg.Models, config.Model{Path: folder + name + ".gguf"})
	}
	names, cfg.Models = append(names, "qwen3"), append(cfg.Models, config.Model{Path: plainReranker(t)})
	err := With(t.Context(), cfg, zerolog.Nop(), func(ctx context.Context, r *Runtime) error {
		for i, name := range names {
			var golden struct {
				Pairs []struct {
					Query, Document string
					Score           float64
				}
			}
			raw, err := os.ReadFile(folder + name + ".json")
			if err == nil {
				err = json.Unmarshal(raw, &golden)
			}
			if err != nil {
				return err
			}
			h := r.Hosts[i]
			if h.Embed != nil || h.Rank == nil {
				t.Fatalf("%s has an embedder %v and a ranker %v", name, h.Embed, h.Rank)
			}
			for _, c := range golden.Pairs {
				scores, _, err := h.Rank.Score(ctx, []embed.Pair{{Query: c.Query, Document: c.Document}})
				if err != nil || !(math.Abs(float64(scores[0])-c.Score) <= 1e-4) {
					t.Errorf("%s: %.40q and %.40q have the score %v, %v, want %v", name, c.Query, c.Document, scores, err, c.Score)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
