package models

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func plainRope() ropeParams {
	return ropeParams{dims: 64, base: 10000, scaling: scalingNone, factor: 1, attn: 1, original: 2048, betaFast: 32, betaSlow: 1, ext: 1}
}

func TestRopeFrequenciesFollowThePapers(t *testing.T) {
	linear := plainRope()
	linear.scaling, linear.factor = scalingLinear, 4
	yarn := plainRope()
	yarn.scaling, yarn.factor = scalingYarn, 4
	qwen := yarn
	qwen.dims, qwen.base, qwen.original = 128, 1e6, 32768
	factors := plainRope()
	factors.factors = make([]float32, 32)
	for i := range factors.factors {
		factors.factors[i] = float32(i + 1)
	}
	plain := func(i int) float64 { return math.Pow(10000, -float64(i)/32) }
	for _, c := range []struct {
		name string
		p    ropeParams
		gain float64
		want map[int]float64
	}{
		{"none", plainRope(), 1, map[int]float64{0: 1, 16: plain(16), 31: plain(31)}},
		{"linear", linear, 1, map[int]float64{0: 0.25, 16: plain(16) / 4, 31: plain(31) / 4}},
		{"factors", factors, 1, map[int]float64{0: 1, 16: plain(16) / 17, 31: plain(31) / 32}},
		// Worked out by a separate script as transformers does (_compute_yarn_parameters).
		{"yarn of Qwen2.5", qwen, 1.138629436111989, map[int]float64{
			0: 1, 20: 0.01333521432163324, 30: 0.0010643609812470017, 36: 0.00017984115587395423,
			40: 4.445698525097307e-05, 50: 5.133812566142866e-06, 63: 3.102344401879299e-07,
		}},
		// Worked out by a separate script from YaRN §3.2 and §3.4.
		{"yarn", yarn, 1.138629436111989, map[int]float64{
			0: 1, 6: 0.1778279410038923, 12: 0.024325212770525993, 16: 0.005384615384615384,
			20: 0.0009730085108210397, 25: 0.00018747355233311396, 31: 3.33380358040831e-05,
		}},
	} {
		r := newRope(c.p)
		if len(r.freq) != c.p.dims/2 || math.Abs(r.gain-c.gain) > 1e-12 {
			t.Errorf("%s: %d frequencies with gain %v, want %d with %v", c.name, len(r.freq), r.gain, c.p.dims/2, c.gain)
		}
		for i, want := range c.want {
			if math.Abs(r.freq[i]/want-1) > 1e-9 {
				t.Errorf("%s: frequency %d is %v, want %v", c.name, i, r.freq[i], want)
			}
		}
	}
}

func TestCachedAnglesAreThoseThatAreComputed(t *testing.T) {
	p := plainRope()
	p.attn = 1.25
	r := newRope(p)
	pos := []int32{0, 1, ropePage - 1, ropePage, 1000, 1000, ropeCached - 1, ropeCached, 100000, 3}
	n := len(r.freq)
	cos, sin := make([]float32, len(pos)*n), make([]float32, len(pos)*n)
	for range 2 { // made, then remembered
		clear(cos)
		clear(sin)
		r.angles(cos, sin, pos)
		for i, p := range pos {
			for j, f := range r.freq {
				s, c := math.Sincos(float64(p) * f)
				if got, want := [2]float32{cos[i*n+j], sin[i*n+j]}, [2]float32{float32(c * 1.25), float32(s * 1.25)}; got != want {
					t.Fatalf("position %d, pair %d: %v, want %v", p, j, got, want)
				}
			}
		}
	}
}

func TestAContextIsExtendedAsByAFileThatSaysSo(t *testing.T) {
	describeWith := func(own, given gguf.Metadata) (*spec, error) {
		f := altered(t, func(md gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
			maps.Copy(md, own)
			return ts
		})
		if _, err := describe(f, LoadOptions{Metadata: given}); err != nil { // as who asks twice
			return nil, err
		}
		return describe(f, LoadOptions{Metadata: given})
	}
	plain, err := describeWith(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		own, given gguf.Metadata // without architecture
		context    int
	}{
		{gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: 4.0, KeyScalingOriginal: int64(plain.Context)}, gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: int64(4)}, 4 * plain.Context},
		{gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: 1.5, KeyScalingOriginal: int64(100)}, gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: 1.5, KeyScalingOriginal: int64(100)}, 150},
		{gguf.Metadata{KeyScaling: "linear", KeyScalingFactor: 2.0, KeyScalingOriginal: int64(plain.Context)}, gguf.Metadata{KeyScaling: "linear", KeyScalingFactor: 2.0}, 2 * plain.Context},
		{gguf.Metadata{KeyScaling: "none", KeyScalingFactor: 1.0}, gguf.Metadata{KeyScaling: "none"}, plain.Context},
	} {
		own := gguf.Metadata{"llama.context_length": uint32(c.context)}
		for key, v := range c.own {
			own["llama."+key] = v
		}
		want, err := describeWith(own, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := describeWith(gguf.Metadata{"llama.rope.scaling.attn_factor": float32(1.25), "llama.rope.scaling.type": "longrope"}, c.given)
		if err != nil {
			t.Fatal(err)
		}
		if got.Context != c.context || !reflect.DeepEqual(newRope(got.ropes.all), newRope(want.ropes.all)) {
			t.Errorf("%v: a context of %d and ropes %+v, of the file %d and %+v", c.given, got.Context, got.ropes.all, want.Context, want.ropes.all)
		}
	}
	for _, c := range []struct {
		given gguf.Metadata
		want  string
	}{
		{gguf.Metadata{KeyScaling: "longrope", KeyScalingFactor: 4.0}, "rope.scaling.type is longrope, want none, linear or yarn"},
		{gguf.Metadata{KeyScalingFactor: 4.0}, "rope.scaling.type is <nil>"},
		{gguf.Metadata{KeyScaling: "yarn"}, "rope.scaling.factor is <nil>, want 1 to"},
		{gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: 0.5}, "rope.scaling.factor is 0.5"},
		{gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: math.NaN()}, "rope.scaling.factor is NaN"},
		{gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: 2.0, KeyScalingOriginal: int64(0)}, "rope.scaling.original_context_length is 0"},
	} {
		if _, err := describeWith(nil, c.given); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want an error that says %q", c.given, err, c.want)
		}
	}
	f, err := gguf.Open("testdata/transformers/mamba2.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := describe(f, LoadOptions{Metadata: gguf.Metadata{KeyScaling: "yarn", KeyScalingFactor: 2.0}}); err == nil || !strings.Contains(err.Error(), "does not rotate positions") {
		t.Errorf("a model without positions: %v", err)
	}
}
