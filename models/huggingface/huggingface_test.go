package huggingface

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// testdata are directories that transformers has saved.
const testdata = "../testdata/huggingface"

func open(t testing.TB, dir string) *gguf.File {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// directories lists the directories of testdata.
func directories(t testing.TB) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(testdata, "*", fileConfig))
	if err != nil || len(found) < 14 {
		t.Fatalf("%d directories, %v", len(found), err)
	}
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	return names
}

func TestTokensAreThoseOfTransformers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testdata, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var of map[string][]struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	for name, cases := range of {
		tok, err := tokenizer.New(open(t, filepath.Join(testdata, name)).Metadata)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, c := range cases {
			if got := tok.Encode(nil, c.Text, tokenizer.Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q = %v, want %v", name, c.Text, got, c.IDs)
			}
		}
	}
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
	for _, name := range directories(t) {
		f := open(t, filepath.Join(testdata, name))
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
			if got == nil || got.Type != inFile(want.Type) || !slices.Equal(got.Dims, want.Dims) {
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

func TestWeightsThatBitNetMakesTernaryOnlineAreSo(t *testing.T) {
	dir := copied(t, "qwen3")
	edit(t, dir, fileConfig, func(c map[string]any) {
		c["quantization_config"] = map[string]any{"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online", "modules_to_not_convert": []string{"lm_head"}}
	})
	plain, ternary := open(t, filepath.Join(testdata, "qwen3")), open(t, dir)
	for _, name := range []string{"blk.0.attn_q.weight", "blk.0.ffn_down.weight", "token_embd.weight", "output.weight"} {
		want, got := floats(t, plain.Tensor(name)), floats(t, ternary.Tensor(name))
		if name != "token_embd.weight" && name != "output.weight" {
			sum := 0.0
			for _, x := range want {
				sum += math.Abs(float64(x))
			}
			mean := float32(sum / float64(len(want)))
			for i, x := range want {
				want[i] = float32(min(1, max(-1, math.RoundToEven(float64(x/mean))))) * mean
			}
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Fatalf("%s: %v at %d, want %v", name, got[i], i, want[i])
			}
		}
	}
}

func TestAModelIsCalledAsItsDirectoryOrItsRepository(t *testing.T) {
	for dir, want := range map[string]string{
		"/models/Qwen2.5-0.5B": "Qwen2.5-0.5B", "/cache/models--acme--Tiny-1.5B/snapshots/0123abc": "Tiny-1.5B", "/models/snapshots/x": "x",
	} {
		if got := Name(filepath.FromSlash(dir)); got != want {
			t.Errorf("Name(%s) = %s, want %s", dir, got, want)
		}
	}
}
