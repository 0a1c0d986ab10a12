package models

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// tinyFiles are small models, of each architecture at least one.
func tinyFiles(t testing.TB) map[string]*gguf.File {
	t.Helper()
	files := map[string]*gguf.File{}
	add := func(name, path string) *gguf.File {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
		return f
	}
	for _, name := range slices.Concat(transformersMixtures, transformersDense) {
		add(name, "testdata/transformers/"+name+".gguf")
	}
	for _, name := range []string{"gemma2", "bitnet-b1.58-f16", "llama3-rope-tied", "qwen3"} {
		files[name] = firstLayer(t, add(name, "testdata/golden/"+name+"/model.gguf"))
	}
	for _, name := range []string{"jina-bert-v2", "reference/bert", "reference/modern-bert", "reference/nomic-bert", "reference/qwen3", "reference/gemma-embedding"} {
		add(name, "../tts/embed/testdata/"+name+".gguf")
	}
	add("a reward model", "../tts/reward/testdata/sequence-qwen-rm.gguf")
	add("qwen35", recurrentModel(t, recurrentShape, gguf.F16))
	files["smollm3"] = renamed(t, files["llama3-rope-tied"], "smollm3")
	files["bitnet"] = renamed(t, files["bitnet-b1.58-f16"], "bitnet")
	files["bitnet-25"] = renamed(t, files["bitnet-b1.58-f16"], "bitnet-25")
	files["phi3"] = fusedPhi(t, files["llama3-rope-tied"])
	return files
}

// rewritten is f with other metadata and tensors.
func rewritten(t testing.TB, md gguf.Metadata, tensors []gguf.Tensor) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, md, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// firstLayer is f without its other layers.
func firstLayer(t testing.TB, f *gguf.File) *gguf.File {
	t.Helper()
	md := maps.Clone(f.Metadata)
	md[md["general.architecture"].(string)+".block_count"] = uint32(1)
	return rewritten(t, md, slices.DeleteFunc(slices.Clone(f.Tensors), func(m gguf.Tensor) bool {
		return strings.HasPrefix(m.Name, "blk.") && !strings.HasPrefix(m.Name, "blk.0.")
	}))
}

// renamed is f as a file of another architecture.
func renamed(t testing.TB, f *gguf.File, arch string) *gguf.File {
	t.Helper()
	md, old := gguf.Metadata{}, f.Metadata["general.architecture"].(string)
	for key, v := range f.Metadata {
		if name, ok := strings.CutPrefix(key, old+"."); ok {
			key = arch + "." + name
		}
		md[key] = v
	}
	md["general.architecture"] = arch
	return rewritten(t, md, f.Tensors)
}

// fusedPhi is a llama as a file of phi3, which stores q, k and v as one matrix, and gate
// and up as another.
func fusedPhi(t testing.TB, f *gguf.File) *gguf.File {
	t.Helper()
	into := map[string]string{"attn_q": "attn_qkv", "attn_k": "attn_qkv", "attn_v": "attn_qkv", "ffn_gate": "ffn_up"}
	joined := map[string]gguf.Tensor{}
	var names []string
	for _, part := range []string{"attn_q.", "attn_k.", "attn_v.", "ffn_gate.", "ffn_up.", ""} { // the order of rows
		for _, m := range f.Tensors {
			if _, done := joined[m.Name]; done && part == "" || part != "" && !strings.Contains(m.Name, part) {
				continue
			}
			if block, name, ok := strings.Cut(strings.TrimSuffix(m.Name, ".weight"), "."); ok {
				number, name, _ := strings.Cut(name, ".")
				if into[name] != "" {
					if part == "" {
						continue
					}
					m.Name = block + "." + number + "." + into[name] + ".weight"
				}
			}
			if whole, ok := joined[m.Name]; ok {
				m.Dims, m.Data = []int{m.Cols(), whole.Rows() + m.Rows()}, slices.Concat(whole.Data, m.Data)
			} else {
				names = append(names, m.Name)
			}
			joined[m.Name] = m
		}
	}
	var tensors []gguf.Tensor
	for _, name := range names {
		tensors = append(tensors, joined[name])
	}
	return renamed(t, rewritten(t, f.Metadata, tensors), "phi3")
}

// unsaid are hyper-parameters that loaders read and the tiny files may lack.
var unsaid = []string{
	"attention.causal", "attention.clamp_kqv", "attention.recurrent_layers", "attention.head_count_kv", "attention.key_length", "attention.scale", "attention.sliding_window",
	"attention.sliding_window_pattern", "attention.temperature_scale", "attention.value_length", "swiglu_clamp_exp", "attn_logit_softcapping", "embedding_scale", "expert_count",
	"expert_feed_forward_length", "expert_gating_func", "expert_group_count", "expert_group_used_count", "expert_shared_feed_forward_length", "expert_weights_norm", "expert_weights_scale",
	"feed_forward_length", "final_logit_softcapping", "full_attention_interval", "hidden_activation", "interleave_moe_layer_step",
	"leading_dense_block_count", "logit_scale", "moe_every_n_layers", "nextn_predict_layers", "pooling_type", "residual_scale",
	"rope.dimension_count", "rope.freq_base", "rope.freq_base_swa", "rope.scale_linear", "rope.scaling.attn_factor", "rope.scaling.factor", "rope.scaling.finetuned",
	"rope.scaling.original_context_length", "rope.scaling.type", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
	"rope.scaling.yarn_ext_factor", "shortconv.l_cache", "ssm.group_count",
}

// oddValues replace any value of a hostile file; nil: no value.
var oddValues = []any{
	nil, uint32(0), uint32(1 << 20), int32(-1), uint64(math.MaxUint64), float32(math.MaxFloat32), float32(math.NaN()), "yarn", []int32{2, -1},
}

func TestNoValueOfAnyKeyMakesALoaderPanicOrTakeMemoryWithoutBound(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	pool := pool.New(1)
	defer pool.Close()
	missing, vocabularies, tried := maps.Clone(architectures), map[any]bool{}, 0
	files := tinyFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		arch := f.Metadata["general.architecture"].(string)
		delete(missing, arch)
		bound := 4*tryModel(t, pool, f, name) + 64<<20
		vocabulary := f.Metadata["tokenizer.ggml.model"] // of which one file says enough
		var keys []string
		for key := range f.Metadata {
			if strings.HasPrefix(key, arch+".") || !vocabularies[vocabulary] {
				keys = append(keys, key)
			}
		}
		vocabularies[vocabulary] = true
		for _, key := range unsaid {
			keys = append(keys, arch+"."+key)
		}
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			for _, v := range oddValues {
				if tried++; tried%sweep.Of(t, 9, 1) != 0 {
					continue
				}
				odd := *f
				odd.Metadata = maps.Clone(f.Metadata)
				if odd.Metadata[key] = v; v == nil {
					delete(odd.Metadata, key)
				}
				what := fmt.Sprintf("%s with %s = %T(%v)", name, key, v, v)
				if took := tryModel(t, pool, &odd, what); took > bound {
					t.Errorf("%s: %d MiB, want at most %d", what, took>>20, bound>>20)
				}
			}
		}
	}
	for arch := range missing {
		t.Errorf("no tiny file has the architecture %s", arch)
	}
}

// tryModel loads a file and computes a few tokens, either of which may fail but not
// panic. It returns the bytes that were allocated.
func tryModel(t *testing.T, pool *pool.Pool, f *gguf.File, what string) (allocated uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	guarded(t, what, func() {
		_, err := Describe(f, LoadOptions{}) // as lists of models do
		regular(t, what, err)
		_, err = Measure(f, LoadOptions{})
		regular(t, what, err)
		if b, err := LoadFile(f, LoadOptions{Pool: pool}); err == nil {
			defer b.exec.close()
			compute(b, nil)
		} else if regular(t, what, err); !strings.Contains(err.Error(), "cannot run this model") {
			t.Errorf("%s: %v, which is not ErrModel", what, err)
		}
	})
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// regular fails for an error that was a panic.
func regular(t *testing.T, what string, err error) {
	t.Helper()
	var p *parallel.Panic
	if errors.As(err, &p) {
		t.Errorf("%s: %v\n%s", what, err, p.Stack)
	}
}

// guarded does what must not panic.
func guarded(t *testing.T, what string, do func()) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v\n%s", what, p, debug.Stack())
		}
	}()
	do()
}

// compute computes three tokens by v, or by the model as it is, and then another, which may fail.
func compute(b *Bundle, v *Variant) {
	cache, err := kv.New(b.Model.Config().KV(), kv.Options{Type: kv.F16, BlockLen: 16, Blocks: 4, States: 2})
	if err != nil {
		return
	}
	defer cache.Close()
	seq, batch := cache.Open(nil), Batch{}
	for _, tokens := range [][]int32{{1, 2, 3}, {2}} {
		at := seq.Len()
		if seq.Grow(len(tokens)) != nil {
			return
		}
		batch.Reset()
		batch.Add(seq, at, len(tokens), tokens...)
		batch.Spans[0].Variant = v
		_ = b.Model.Forward(&batch, cache)
		if n := b.Model.Config().Outputs; len(batch.Logits) < n {
			continue
		} else if b.Classifier != nil {
			b.Classifier.Scores(batch.Logits[:n])
		} else if b.Model.Config().Pooling != PoolingNone {
			b.Projection.Apply(batch.Logits[:n])
		}
	}
}
