package models

import (
	"encoding/binary"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// without returns a with one trait less each, by the trait's name: all that are not zero, mixtures' included.
func (a architecture) without() map[string]architecture {
	out := map[string]architecture{}
	var each func(at reflect.Value, path string, indices []int)
	each = func(at reflect.Value, path string, indices []int) {
		for i := range at.NumField() {
			f, name, to := at.Field(i), path+at.Type().Field(i).Name, append(slices.Clone(indices), i)
			switch {
			case f.Kind() == reflect.Struct:
				each(f, name+".", to)
			case f.Kind() == reflect.Pointer && !f.IsNil():
				each(f.Elem(), name+".", to)
			case f.Kind() != reflect.Pointer && !f.IsZero():
				b := a
				if m := a.ffn.mixture; m != nil {
					own := *m
					b.ffn.mixture = &own
				}
				x := reflect.ValueOf(&b).Elem()
				for _, k := range to {
					if x.Kind() == reflect.Pointer {
						x = x.Elem()
					}
					x = x.Field(k)
				}
				reflect.NewAt(x.Type(), x.Addr().UnsafePointer()).Elem().SetZero()
				out[name] = b
			}
		}
	}
	each(reflect.ValueOf(a), "", nil)
	return out
}

// asTold gives the logits of a file of an architecture that is a; nil: it is refused.
func asTold(t *testing.T, p *pool.Pool, f *gguf.File, a architecture) (logits []float32) {
	t.Helper()
	opt := LoadOptions{Pool: p, Exact: true}
	h, _, err := newHeader(f, nil)
	if err != nil {
		return nil
	}
	told := newTensors(h, a, &opt)
	err = parallel.Try(func() error { // what is missing may be found as a panic
		graph, err := buildGraph(told, readSpec(h, a, 0), &opt)
		if err != nil {
			return err
		}
		m := newExecutor(&opt, graph, told.Local())
		defer m.close()
		tokens := transformersTokens()
		logits = slices.Clone(newRunner(t, m, kv.F32).feed(len(tokens), tokens...))
		return nil
	})
	if err != nil {
		if err := told.Memory().Free(); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	return logits
}

// transformersLogits reads the logits of a name.
func transformersLogits(t *testing.T, name string) []float32 {
	t.Helper()
	raw, err := os.ReadFile("testdata/transformers/" + name + ".npy")
	if err != nil {
		t.Fatal(err)
	}
	raw = raw[10+int(binary.LittleEndian.Uint16(raw[8:])):]
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// changed returns another value of the same type: twice the number, or the other truth value.
func changed(value any) any {
	switch x := reflect.ValueOf(value); x.Kind() {
	case reflect.Bool:
		return !x.Bool()
	case reflect.Uint32:
		return uint32(max(1, 2*x.Uint()))
	case reflect.Float32:
		return float32(2 * x.Float())
	case reflect.String:
		return x.String() + "?"
	case reflect.Slice:
		all := reflect.MakeSlice(x.Type(), x.Len(), x.Len())
		for i := range x.Len() {
			switch e := x.Index(i); e.Kind() {
			case reflect.Int32:
				all.Index(i).SetInt(2*e.Int() + 1)
			default:
				all.Index(i).Set(reflect.ValueOf(changed(e.Interface())))
			}
		}
		return all.Interface()
	}
	return nil
}

// silent are the traits and keys that no file of testdata/transformers shows, and why; an architecture of * is any.
var silent = map[string]string{
	"* key attention.layer_norm_rms_epsilon":             "norms are LayerNorm, but for other architectures",
	"* key feed_forward_length":                          "the width of experts is said apart, and there is nothing else",
	"* key attention.causal":                             "encoders have no choice",
	"* positions.mayStand":                               "the files rotate; granitehybrid's do not",
	"* attention.qkv":                                    "matrices are apart; bailingmoe2's are one",
	"* ffn.biases":                                       "they are read where there is no gate; files that lack them are refused",
	"* ffn.mixture.perChosen":                            "files say the width of an expert",
	"nemotron_h key expert_used_count":                   "there are no experts",
	"nemotron_h key rope.freq_base":                      "attention does not rotate",
	"nemotron_h_moe key rope.freq_base":                  "attention does not rotate",
	"bitnet matrixFactors":                               "files that bitnet.cpp makes have them, see testdata/golden",
	"deepseek2 key attention.value_length":               "values have the width of their head, attention.value_length_mla",
	"deepseek2 key rope.scaling.original_context_length": "neither of two pairs lies on the ramp",
	"gemma3 attention.queryWidth":                        "it is another of 27B alone",
	"gemma3 attention.softCap":                           "no published model has a cap",
	"gemma4 positions.windowedBase":                      "the file says the base",
	"glm4moe attention.qkNorm":                           "bailingmoe2 is this model with norms of heads",
	"glm4moe ffn.mixture.grouped":                        "bailingmoe2 is this model with groups of experts",
	"granitemoe ffn.mixture.shared":                      "granitehybrid has it",
	"llama ffn.mixture.optional":                         "mixtral is the only file; internlm2 is the same without a mixture",
	"qwen3 yesNo":                                        "files that rank are those of tts/embed",
}

func TestEveryTraitAndKeyOfAnArchitectureShowsInItsLogits(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	shown := map[string]bool{}
	for _, name := range slices.Concat(transformersMixtures, transformersDense) {
		f, err := gguf.Open("testdata/transformers/" + name + ".gguf")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		arch := f.Metadata["general.architecture"].(string)
		want := transformersLogits(t, name)
		differs := func(f *gguf.File, a architecture) bool {
			got := asTold(t, p, f, a)
			return len(got) != len(want) || !(nmse(got, want) < 1e-9)
		}
		if differs(f, architectures[arch]) {
			t.Fatalf("%s does not give its logits", name)
		}
		for trait, a := range architectures[arch].without() {
			what := arch + " " + trait
			shown[what] = shown[what] || differs(f, a)
		}
		for key := range f.Metadata {
			if what, ours := strings.CutPrefix(key, arch+"."); ours {
				what = arch + " key " + what
				for _, value := range []any{nil, changed(f.Metadata[key])} {
					odd := *f
					odd.Metadata = maps.Clone(f.Metadata)
					if odd.Metadata[key] = value; value == nil {
						delete(odd.Metadata, key)
					}
					shown[what] = shown[what] || differs(&odd, architectures[arch])
				}
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(shown)) {
		arch, part, _ := strings.Cut(what, " ")
		_, excused := silent[arch+" "+part]
		if _, anywhere := silent["* "+part]; !shown[what] && !excused && !anywhere {
			t.Errorf("%s: without it, or with another value, logits are the same", what)
		} else if shown[what] && excused {
			t.Errorf("%s is said to be silent, but shows", what)
		}
	}
}
