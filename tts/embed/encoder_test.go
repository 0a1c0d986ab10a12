package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/tts"
)

// golden is a text with what testdata/make.py makes of it.
type golden struct {
	Text string    `json:"text"`
	IDs  []int32   `json:"ids"`
	Mean []float32 `json:"mean"`
	CLS  []float32 `json:"cls"`
	Last []float32 `json:"last"`
}

// long tells whether reading the text takes much longer than the others.
func (g *golden) long() bool { return len(g.IDs) > 100 }

// readsLong tells whether a reader is given the long texts: where not all cases are walked, once an architecture,
// and BERT with each pooling. Attention knows nothing of the pooling.
func readsLong(t *testing.T, arch string, p models.Pooling, exact bool) bool {
	t.Helper()
	return !exact && (arch == "bert" || p == models.PoolingMean) || sweep.All(t)
}

// poolings maps the files' poolings to the golden vector that belongs to each.
var poolings = map[models.Pooling]func(g *golden) []float32{
	models.PoolingMean:  func(g *golden) []float32 { return g.Mean },
	models.PoolingFirst: func(g *golden) []float32 { return g.CLS },
	models.PoolingLast:  func(g *golden) []float32 { return g.Last },
}

// readGolden reads an architecture's texts.
func readGolden(t *testing.T, arch string) (cases []golden) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", arch+".json"))
	if err == nil {
		err = json.Unmarshal(raw, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// encoder runs the reference model of an architecture with that pooling.
func encoder(t *testing.T, arch string, p models.Pooling, exact bool) *Embedder {
	t.Helper()
	_, m := run(t, filepath.Join("testdata", arch+".gguf"), exact, func(f *gguf.File) { f.Metadata[arch+".pooling_type"] = uint32(p) })
	e, err := NewEmbedder(m)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// run runs the model of a file after a change.
func run(t *testing.T, path string, exact bool, change func(*gguf.File)) (*models.Bundle, *tts.Model) {
	t.Helper()
	f, err := models.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Metadata["lutra.tokenizer.nfc"] = false // the tokenizers that the files were made with compose nothing
	change(f)
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	if f, err = gguf.Parse(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	opt := batcher.DefaultOptions()
	opt.Pool = pool.New(2)
	t.Cleanup(opt.Pool.Close)
	bundle, err := models.LoadFile(f, models.LoadOptions{Pool: opt.Pool, Exact: exact})
	if err != nil {
		t.Fatal(err)
	}
	cache, err := kv.New(bundle.Model.Config().KV(), kv.Options{Type: kv.F32, BlockLen: 16, Blocks: 128})
	if err != nil {
		t.Fatal(err)
	}
	engine := batcher.New(bundle.Model, cache, opt)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		cache.Close()
		bundle.Close()
	})
	return bundle, tts.NewModel(bundle, engine)
}

func TestEncodersGiveTheVectorsOfAnIndependentForwardPass(t *testing.T) {
	sweep.Full(t)
	for _, arch := range []string{"bert", "nomic-bert", "jina-bert-v2"} {
		cases := readGolden(t, arch)
		for p, want := range poolings {
			for _, exact := range []bool{true, false} {
				t.Run(fmt.Sprint(arch, p, exact), func(t *testing.T) {
					e := encoder(t, arch, p, exact)
					r, tokens := &Request{}, 0
					texts := slices.Clone(cases)
					if !readsLong(t, arch, p, exact) {
						texts = slices.DeleteFunc(texts, func(c golden) bool { return c.long() })
					}
					for _, c := range texts {
						r.Texts, tokens = append(r.Texts, tts.Prompt{Text: c.Text}), tokens+len(c.IDs)
						got, err := e.model.Encode(t.Context(), &tts.Prompt{Text: c.Text})
						if err != nil || !slices.Equal(got, c.IDs) {
							t.Fatalf("%q has the tokens %v, %v, want %v", c.Text, got, err, c.IDs)
						}
					}
					together, read, err := e.Embed(t.Context(), r)
					if err != nil || read != tokens {
						t.Fatalf("%d tokens read, %v, want %d", read, err, tokens)
					}
					worst := 0.0
					for i, c := range texts {
						for k, x := range want(&c) {
							worst = max(worst, math.Abs(float64(x-together[i][k])))
						}
						if c.long() && p != models.PoolingMean && !sweep.All(t) {
							continue
						}
						alone, _, err := e.Embed(t.Context(), &Request{Texts: r.Texts[i : i+1]})
						if err != nil || !slices.Equal(alone[0], together[i]) {
							t.Errorf("%q alone is %v, %v, among others %v", c.Text, alone, err, together[i])
						}
					}
					t.Logf("an element differs by %.2g at most", worst)
					if bar := map[bool]float64{true: 1e-6, false: 1e-4}[exact]; !(worst <= bar) {
						t.Errorf("an element differs by %v, want at most %v", worst, bar)
					}
				})
			}
		}
	}
}

// joined stacks the tensors of that name in each layer into one, in their order.
func joined(f *gguf.File, layer int, name, suffix string, parts ...string) {
	at := func(s string) string { return fmt.Sprintf("blk.%d.%s.%s", layer, s, suffix) }
	sum := gguf.Tensor{Name: at(name)}
	for _, p := range parts {
		i := slices.IndexFunc(f.Tensors, func(t gguf.Tensor) bool { return t.Name == at(p) })
		t, err := f.Tensors[i].Load(0, f.Tensors[i].Rows(), nil)
		if err != nil {
			panic(err)
		}
		if sum.Dims == nil {
			sum.Type, sum.Dims = t.Type, slices.Clone(f.Tensors[i].Dims)
		} else {
			sum.Dims[len(sum.Dims)-1] += f.Tensors[i].Dims[len(sum.Dims)-1]
		}
		sum.Data = append(sum.Data, t.Data...)
		f.Tensors = slices.Delete(f.Tensors, i, i+1)
	}
	f.Tensors = append(f.Tensors, sum)
}

func TestMatricesMayBeStoredAsOne(t *testing.T) {
	for arch, join := range map[string]func(f *gguf.File, layer int){
		"bert": func(f *gguf.File, layer int) { // as llama.cpp's converter leaves Jina's rerankers
			joined(f, layer, "attn_qkv", "weight", "attn_q", "attn_k", "attn_v")
			joined(f, layer, "attn_qkv", "bias", "attn_q", "attn_k", "attn_v")
		},
		"jina-bert-v2": func(f *gguf.File, layer int) { // as newer versions of it
			joined(f, layer, "ffn_up", "weight", "ffn_gate", "ffn_up")
		},
	} {
		t.Run(arch, func(t *testing.T) {
			path := filepath.Join("testdata", arch+".gguf")
			var vectors [2][][]float32
			for i := range vectors {
				_, m := run(t, path, true, func(f *gguf.File) {
					for layer := 0; i == 1 && layer < 2; layer++ {
						join(f, layer)
					}
				})
				e, err := NewEmbedder(m)
				if err != nil {
					t.Fatal(err)
				}
				if vectors[i], _, err = e.Embed(t.Context(), &Request{Texts: []tts.Prompt{{Text: "the cat sat on the mat"}}}); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(vectors[0][0], vectors[1][0]) {
				t.Errorf("stored as one, matrices give %v, apart %v", vectors[1][0], vectors[0][0])
			}
		})
	}
}
