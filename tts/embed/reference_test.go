package embed

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/tts"
)

// reference has the results of transformers and sentence-transformers for a model, from testdata/reference/make.py.
type reference struct {
	Texts []referenceText `json:"texts"`
	Pairs []referencePair `json:"pairs"`
}

type referenceText struct {
	golden
	Hidden [][]float32 `json:"hidden"` // of each token; some texts have none
	Dense  []float32   `json:"dense"`  // the mean behind Dense modules
}

type referencePair struct {
	Query    string  `json:"query"`
	Document string  `json:"document"`
	IDs      []int32 `json:"ids"`
	Score    float64 `json:"score"`
}

// bar is by how much an element may differ from the reference, which computes in float32
// too, in another order.
const bar = 2e-5

func readReference(t *testing.T, name string) (r reference) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "reference", name+".json"))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// withoutHead makes of a file that ranks one that embeds.
func withoutHead(p models.Pooling) func(*gguf.File) {
	return func(f *gguf.File) {
		arch, _ := f.Metadata.String("general.architecture")
		f.Metadata[arch+".pooling_type"] = uint32(p)
		f.Tensors = slices.DeleteFunc(f.Tensors, func(t gguf.Tensor) bool {
			return strings.HasPrefix(t.Name, "cls.") || strings.HasPrefix(t.Name, "dense_")
		})
	}
}

func referencePath(name string) string { return filepath.Join("testdata", "reference", name+".gguf") }

// furthest returns the largest difference of an element of got from want's.
func furthest(got, want []float32) (worst float64) {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= worst) {
			worst = d
		}
	}
	return worst
}

func TestVectorsAreThoseOfSentenceTransformersAloneAndTogether(t *testing.T) {
	for _, name := range []string{"bert", "nomic-bert", "modern-bert", "xlm-roberta", "qwen3", "gemma-embedding"} {
		ref := readReference(t, name)
		for p, want := range poolings {
			if want(&ref.Texts[0].golden) == nil {
				continue
			}
			for _, exact := range []bool{true, false}[:sweep.Cases(1, 2)] {
				t.Run(fmt.Sprint(name, p, exact), func(t *testing.T) {
					_, m := run(t, referencePath(name), exact, withoutHead(p))
					e, err := NewEmbedder(m)
					if err != nil {
						t.Fatal(err)
					}
					r, tokens := &Request{}, 0
					texts := slices.Clone(ref.Texts)
					if !readsLong(t, name, p, exact) {
						texts = slices.DeleteFunc(texts, func(c referenceText) bool { return c.long() })
					}
					for _, c := range texts {
						r.Texts, tokens = append(r.Texts, tts.Prompt{Text: c.Text}), tokens+len(c.IDs)
						if got, err := e.model.Encode(t.Context(), &tts.Prompt{Text: c.Text}); err != nil || !slices.Equal(got, c.IDs) {
							t.Errorf("%.60q has the tokens %v, %v, want %v", c.Text, got, err, c.IDs)
						}
					}
					together, read, err := e.Embed(t.Context(), r)
					if err != nil || read != tokens {
						t.Fatalf("%d tokens read, %v, want %d", read, err, tokens)
					}
					worst := 0.0
					for i, c := range texts {
						worst = max(worst, furthest(together[i], want(&c.golden)))
						if c.long() && p != models.PoolingMean && !sweep.All(t) {
							continue
						}
						alone, _, err := e.Embed(t.Context(), &Request{Texts: r.Texts[i : i+1]})
						if err != nil || !slices.Equal(alone[0], together[i]) {
							t.Errorf("%.60q alone is %v, %v, among others %v", c.Text, alone, err, together[i])
						}
					}
					t.Logf("an element differs by %.2g at most", worst)
					if !(worst <= bar) {
						t.Errorf("an element differs by %v, want at most %v", worst, bar)
					}
				})
			}
		}
	}
}

func TestDenseModulesMakeTheVectorsOfSentenceTransformers(t *testing.T) {
	const name = "gemma-embedding"
	for kind, path := range map[string]string{"file": referencePath(name), "directory": filepath.Join("testdata", "reference", name)} {
		t.Run(kind, func(t *testing.T) {
			_, m := run(t, path, true, func(*gguf.File) {})
			e, err := NewEmbedder(m)
			if err != nil {
				t.Fatal(err)
			}
			ref := readReference(t, name)
			if e.Width() != len(ref.Texts[0].Dense) {
				t.Fatalf("vectors of %d elements, want %d", e.Width(), len(ref.Texts[0].Dense))
			}
			r := &Request{}
			for _, c := range ref.Texts {
				r.Texts = append(r.Texts, tts.Prompt{Text: c.Text})
			}
			vectors, _, err := e.Embed(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range ref.Texts {
				if d := furthest(vectors[i], c.Dense); !(d <= bar) {
					t.Errorf("%.60q: an element differs by %v, want at most %v", c.Text, d, bar)
				}
			}
		})
	}
}

func TestHiddenStatesAreThoseOfTransformers(t *testing.T) {
	for _, name := range []string{"bert", "nomic-bert", "modern-bert", "xlm-roberta", "qwen3", "gemma-embedding"} {
		t.Run(name, func(t *testing.T) {
			bundle, _ := run(t, referencePath(name), true, withoutHead(models.PoolingLast))
			cache, err := kv.New(bundle.Model.Config().KV(), kv.Options{Type: kv.F32, BlockLen: 16, Blocks: 64})
			if err != nil {
				t.Fatal(err)
			}
			defer cache.Close()
			var b models.Batch
			var want []float32
			for _, c := range readReference(t, name).Texts {
				if c.Hidden == nil {
					continue
				}
				seq := cache.Open(nil)
				if err := seq.Grow(len(c.IDs)); err != nil {
					t.Fatal(err)
				}
				b.Add(seq, 0, len(c.IDs), c.IDs...)
				want = append(want, slices.Concat(c.Hidden...)...)
			}
			if err := bundle.Model.Forward(&b, cache); err != nil {
				t.Fatal(err)
			}
			worst := furthest(b.Logits, want)
			t.Logf("%d hidden states, of which an element differs by %.2g at most", len(b.Tokens), worst)
			if !(worst <= bar) {
				t.Errorf("an element differs by %v, want at most %v", worst, bar)
			}
		})
	}
}

// plainReranker makes of qwen3 what a conversion that knows nothing of rerankers gives.
func plainReranker(f *gguf.File) {
	withoutHead(models.PoolingNone)(f)
	delete(f.Metadata, "qwen3.pooling_type")
	f.Metadata["general.name"] = "Qwen3 Reranker 0.6B"
	f.Metadata["tokenizer.ggml.add_eos_token"] = false
}

// headedReranker makes of qwen3 what llama.cpp's converter makes of Qwen3-Reranker.
func headedReranker(template string) func(*gguf.File) {
	return func(f *gguf.File) {
		f.Metadata["qwen3.pooling_type"] = uint32(4)
		f.Metadata["tokenizer.chat_template.rerank"] = template
	}
}

func TestScoresAreThoseOfCrossEncodersAloneAndTogether(t *testing.T) {
	plain, _ := run(t, referencePath("qwen3"), true, plainReranker)
	for _, test := range []struct {
		name, file string
		change     func(*gguf.File)
	}{
		{"BERT with types of tokens", "bert", func(*gguf.File) {}},
		{"RoBERTa with two separators", "xlm-roberta", func(*gguf.File) {}},
		{"ModernBERT with the mean", "modern-bert", func(*gguf.File) {}},
		{"a directory of BERT", "bert-ranker", func(*gguf.File) {}},
		{"a directory of XLM-RoBERTa", "xlm-roberta-ranker", func(*gguf.File) {}},
		{"a directory of ModernBERT", "modern-bert-ranker", func(*gguf.File) {}},
		{"Qwen3-Reranker with a head", "qwen3", headedReranker(plain.Rerank)},
		{"Qwen3-Reranker without", "qwen3", plainReranker},
	} {
		for _, exact := range []bool{true, false} {
			t.Run(fmt.Sprint(test.name, exact), func(t *testing.T) {
				file, directory := strings.CutSuffix(test.file, "-ranker")
				ref, path := readReference(t, file), referencePath(file)
				if directory {
					path = filepath.Join("testdata", "reference", test.file)
				}
				bundle, m := run(t, path, exact, test.change)
				ranker, err := NewRanker(m, bundle.Rerank, bundle.Classifier)
				if err != nil {
					t.Fatal(err)
				}
				var pairs []Pair
				tokens := 0
				for _, c := range ref.Pairs {
					p := Pair{c.Query, c.Document}
					if got, err := ranker.tokens(t.Context(), p); err != nil || !slices.Equal(got, c.IDs) {
						t.Errorf("%v has the tokens %v, %v, want %v", p, got, err, c.IDs)
					}
					pairs, tokens = append(pairs, p), tokens+len(c.IDs)
				}
				together, read, err := ranker.Score(t.Context(), pairs)
				if err != nil || read != tokens {
					t.Fatalf("%d tokens read, %v, want %d", read, err, tokens)
				}
				for i, c := range ref.Pairs {
					if d := math.Abs(float64(together[i]) - c.Score); !(d <= bar) {
						t.Errorf("%v has the score %v, want %v", pairs[i], together[i], c.Score)
					}
					alone, _, err := ranker.Score(t.Context(), pairs[i:i+1])
					if err != nil || alone[0] != together[i] {
						t.Errorf("%v alone has the score %v, %v, among others %v", pairs[i], alone, err, together[i])
					}
				}
			})
		}
	}
}
