package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
)

// testdata are directories that transformers has saved.
const testdata = "../../models/testdata/huggingface"

func open(t testing.TB, dir string) *gguf.File {
	t.Helper()
	f, err := huggingface.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// written returns the file that Encode makes of f.
func written(t testing.TB, f *gguf.File, to string) *gguf.File {
	t.Helper()
	md, sources, err := Encode(f, to)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := gguf.WriteFrom(&out, md, sources); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAConvertedDirectoryHasTheKeysAndBitsOfTheDirectory(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(testdata, "*", "config.json"))
	if err != nil || len(found) < 14 {
		t.Fatalf("%d directories, %v", len(found), err)
	}
	for _, config := range found {
		name := filepath.Base(filepath.Dir(config))
		f := open(t, filepath.Dir(config))
		g := written(t, f, "auto")
		delete(g.Metadata, "general.file_type")
		delete(g.Metadata, "general.quantization_version")
		if !reflect.DeepEqual(f.Metadata, g.Metadata) {
			t.Errorf("%s: keys %v, want %v", name, g.Metadata, f.Metadata)
		}
		if len(f.Tensors) != len(g.Tensors) {
			t.Errorf("%s: %d tensors, want %d", name, len(g.Tensors), len(f.Tensors))
		}
		for i := range f.Tensors {
			want, got := &f.Tensors[i], g.Tensor(f.Tensors[i].Name)
			if got == nil || got.Type != unchosen(want) || !slices.Equal(got.Dims, want.Dims) {
				t.Errorf("%s: tensor %s of %v %v is not there, or of another type or shape", name, want.Name, want.Type, want.Dims)
				continue
			}
			if got.Type != want.Type {
				if !slices.Equal(floats(t, got), floats(t, want)) {
					t.Errorf("%s: tensor %s has other values as %v", name, want.Name, got.Type)
				}
				continue
			}
			for lo := range want.Rows() { // as the loader reads it
				a, err := want.Load(lo, lo+1, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := got.Load(lo, lo+1, nil)
				if err != nil || !bytes.Equal(a.Data, b.Data) {
					t.Fatalf("%s: tensor %s: row %d differs, %v", name, want.Name, lo, err)
				}
			}
		}
	}
}

// llama.cpp refuses a file without the sections, and multiplies convolutions as F32 alone.
func TestAConversionHasWhatLlamaCppWantsOfRecurrentLayers(t *testing.T) {
	for _, c := range []struct{ dir, convolution, sections string }{
		{"qwen35moe", "blk.0.ssm_conv1d.weight", "qwen35moe.rope.dimension_sections"},
		{"lfm2", "blk.0.shortconv.conv.weight", ""},
	} {
		f := open(t, tokenless(t, c.dir))
		for _, to := range []string{"auto", "F16", "Q8_0"} {
			g := written(t, f, to)
			if w := g.Tensor(c.convolution); w == nil || w.Type != gguf.F32 {
				t.Errorf("%s as %s: the convolution is %v", c.dir, to, w)
			}
			if n, ok := g.Metadata[c.sections].([]int32); c.sections != "" && (!ok || len(n) != 4) {
				t.Errorf("%s as %s: %s are %v", c.dir, to, c.sections, g.Metadata[c.sections])
			}
		}
	}
}

func TestTypesOfAConversionAreOfMatricesAlone(t *testing.T) {
	for _, c := range []struct {
		dir, to      string
		matrix, head gguf.Type // of blk.0.ffn_up.weight and token_embd.weight
		file         uint32
	}{
		{"qwen2", "auto", gguf.F16, gguf.F16, 1},
		{"llama", "auto", gguf.BF16, gguf.BF16, 32},
		{"llama", "F32", gguf.F32, gguf.F32, 0},
		{"qwen3", "F16", gguf.F16, gguf.F16, 1},
		{"qwen3", "BF16", gguf.BF16, gguf.BF16, 32},
		{"mistral", "Q8_0", gguf.Q8_0, gguf.Q8_0, 7},
		{"bitnet", "I2_S", gguf.I2_S, gguf.F16, 40},
		{"bitnet", "F16", gguf.F16, gguf.F16, 1},
	} {
		f := open(t, filepath.Join(testdata, c.dir))
		g := written(t, f, c.to)
		for name, want := range map[string]gguf.Type{"blk.0.ffn_up.weight": c.matrix, "token_embd.weight": c.head, "blk.0.attn_norm.weight": gguf.F32} {
			got := g.Tensor(name)
			if got == nil || got.Type != want {
				t.Fatalf("%s as %s: %s is %+v, want %v", c.dir, c.to, name, got, want)
			}
			a, b := floats(t, f.Tensor(name)), floats(t, got)
			for i := range a {
				if diff := math.Abs(float64(a[i] - b[i])); diff > 0.02 || want != gguf.Q8_0 && diff > 1e-3*math.Abs(float64(a[i])) {
					t.Fatalf("%s as %s: %s has %v at %d, want %v", c.dir, c.to, name, b[i], i, a[i])
				}
			}
		}
		if got := g.Metadata["general.file_type"]; got != c.file {
			t.Errorf("%s as %s: general.file_type is %v, want %d", c.dir, c.to, got, c.file)
		}
	}
}

func TestFactorsOfNVFP4GoIntoWeightsOfOtherTypes(t *testing.T) {
	for dir, name := range map[string]string{"nvfp4": "blk.0.ffn_up.", "nvfp4-modelopt": "blk.0.ffn_up_exps."} {
		f := open(t, filepath.Join(testdata, dir))
		g := written(t, f, "F32")
		want, factors, got := floats(t, f.Tensor(name+"weight")), floats(t, f.Tensor(name+"scale")), floats(t, g.Tensor(name+"weight"))
		for i := range want {
			if want[i] *= factors[i/(len(want)/len(factors))]; got[i] != want[i] {
				t.Fatalf("%s: number %d is %v, want %v", dir, i, got[i], want[i])
			}
		}
		if g.Tensor(name+"scale") != nil {
			t.Errorf("%s: the factors are there still", dir)
		}
	}
}

func floats(t testing.TB, x *gguf.Tensor) []float32 {
	t.Helper()
	v := make([]float32, x.Len())
	if err := x.Dequantize(v, 0); err != nil {
		t.Fatal(err)
	}
	return v
}

// A checkpoint of floats may hold ternary weights alone.
func TestFloatsThatAreTernaryBecomeTernaryTypesWithoutLoss(t *testing.T) {
	raw, x := make([]byte, 4*4*256), make([]float32, 4*256)
	for i := range x {
		x[i] = float32(i*i%3-1) * float32(1+i/256) * 0.25
	}
	if err := gguf.Quantize(gguf.F32, raw, x); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Assemble(gguf.Metadata{}, []gguf.Tensor{{Name: "blk.0.ffn_up.weight", Type: gguf.F32, Dims: []int{256, 4}, Data: raw}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for to, typ := range map[string]gguf.Type{"TQ1_0": gguf.TQ1_0, "TQ2_0": gguf.TQ2_0} {
		got := &written(t, f, to).Tensors[0]
		if got.Type != typ || !slices.Equal(floats(t, got), x) {
			t.Errorf("as %s: %v, with the same values %t", to, got.Type, slices.Equal(floats(t, got), x))
		}
	}
	x[700] = 0.3
	if err := gguf.Quantize(gguf.F32, raw, x); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Encode(f, "TQ2_0"); err == nil {
		t.Error("weights that are not ternary become TQ2_0")
	}
}

// logits computes a model's of some tokens.
func logits(t *testing.T, path string, exact bool) (of []float32) {
	t.Helper()
	tokens := make([]int32, 40)
	for i := range tokens {
		tokens[i] = int32((37*i*i + 11*i + 5) % 64)
	}
	r := reference.Options{Model: path, KVType: "f16", Exact: exact, Threads: 2}
	err := reference.With(t.Context(), &r, func(_ *models.Bundle, score reference.Scorer) error {
		return score(tokens, func(_ int, logits []float32) error {
			of = append(of, logits...)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// tokenless returns a directory of models/testdata/transformers, which have no tokenizer, with one of as many tokens.
func tokenless(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	err := os.CopyFS(dir, os.DirFS(filepath.Join("../../models/testdata/transformers", name)))
	tokenizer, err2 := os.ReadFile(filepath.Join(testdata, "qwen3", "tokenizer.json"))
	if err := errors.Join(err, err2, os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer, 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAConvertedDirectoryGivesTheBitsOfTheDirectory(t *testing.T) {
	var names map[string]any
	text, err := os.ReadFile(filepath.Join(testdata, "logits.json"))
	if err := errors.Join(err, json.Unmarshal(text, &names)); err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for name := range names {
		dirs = append(dirs, filepath.Join(testdata, name))
	}
	// Experts in a latent space, one tensor an expert; convolutions, which become F32.
	for _, name := range []string{"nemotron_h", "nemotron_h_moe", "nemotron_h_moe-latent", "qwen35moe", "lfm2"} {
		dirs = append(dirs, tokenless(t, name))
	}
	for _, dir := range dirs {
		f := open(t, dir)
		md, sources, err := Encode(f, "auto")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), filepath.Base(dir)+".gguf")
		if err := gguf.WriteFile(path, func(w io.Writer) error { return gguf.WriteFrom(w, md, sources) }); err != nil {
			t.Fatal(err)
		}
		// What no file has becomes a type of the same values, which is multiplied otherwise.
		exact := slices.ContainsFunc(f.Tensors, func(x gguf.Tensor) bool { return x.Type >= gguf.Q4_Z32 && x.Type <= gguf.Q4_Z128 })
		if !slices.Equal(logits(t, path, exact), logits(t, dir, exact)) {
			t.Errorf("%s: the file has other logits than the directory", filepath.Base(dir))
		}
	}
}
