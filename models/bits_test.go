package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

var updateBits = flag.Bool("update-bits", false, "rewrite testdata/bits.json for the families of kernels that run here")

// bitsOf is a hash of all logits of tokens, computed as a prompt, and token by token from
// the 40th on.
func bitsOf(t *testing.T, m Model, kind kv.Type, tokens []int32) string {
	t.Helper()
	h := sha256.New()
	add := func(logits []float32) {
		var b []byte
		for _, v := range logits {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		h.Write(b)
	}
	r := newRunner(t, m, kind)
	first := max(0, len(tokens)-12)
	add(r.feed(first, tokens[:first]...))
	for i := first; i < len(tokens); i++ {
		add(r.feed(1, tokens[i]))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// someTokens are n ids below limit.
func someTokens(n, limit int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(3 + i*i*7%(limit-3))
	}
	return tokens
}

// eachFamily calls f with every instruction set that this machine has, by family.
func eachFamily(f func(family string, isa cpu.ISA)) {
	for _, isa := range cpu.Supported() {
		restore := cpu.Override(isa)
		f(cpu.Family(), isa)
		restore()
	}
}

// bitsFile holds a hash for each family and model. Where Go fuses, portable code has the
// bits of a compiler's choices, and no hash of its own.
const bitsFile = "testdata/bits.json"

func TestKernelsOfAFamilyGiveTheBitsThatStandForIt(t *testing.T) {
	sweep.Full(t)
	workers := pool.New(2)
	defer workers.Close()
	raw, err := os.ReadFile(bitsFile)
	if err != nil && !*updateBits {
		t.Fatal(err)
	}
	want := map[string]map[string]string{}
	if err := json.Unmarshal(raw, &want); err != nil && !*updateBits {
		t.Fatal(err)
	}
	files := map[string]func() (*gguf.File, error){}
	for _, e := range embedded.Models() {
		if e.Role == embedded.Generator {
			files[e.Name] = func() (*gguf.File, error) { return embedded.Open(e.Name) }
		}
	}
	golden, err := filepath.Glob("testdata/golden/*/model.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range golden {
		files[filepath.Base(filepath.Dir(path))] = func() (*gguf.File, error) { return gguf.Open(path) }
	}
	eachFamily(func(family string, isa cpu.ISA) {
		if portable := strings.HasSuffix(family, "-portable"); *updateBits && want[family] == nil && (!portable || family == "amd64-portable") {
			want[family] = map[string]string{}
		}
		if want[family] == nil {
			t.Logf("%s is a family without hashes", family)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			f, err := files[name]()
			if err != nil {
				t.Fatal(err)
			}
			m, err := loadModel(f, LoadOptions{Pool: workers})
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []kv.Type{kv.F16, kv.Int8}[:sweep.Of(t, 1, 2)] {
				name := fmt.Sprintf("%s %v", name, kind)
				got := bitsOf(t, m, kind, someTokens(52, min(m.Config().Vocab, 250)))
				if *updateBits {
					want[family][name] = got
				} else if got != want[family][name] {
					t.Errorf("%v: logits of %s have the hash %s, want %s as all of %s", isa, name, got, want[family][name], family)
				}
			}
			if err := m.close(); err != nil {
				t.Error(err)
			}
			f.Close()
		}
	})
	if *updateBits && !sweep.All(t) {
		t.Fatal("-update-bits wants LUTRA_SWEEPS=all")
	}
	if *updateBits {
		out, err := json.MarshalIndent(want, "", "\t")
		if err == nil {
			err = os.WriteFile(bitsFile, append(out, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for a, bits := range want { // so that a name of its own is deserved
		for b, others := range want {
			if a < b && fmt.Sprint(bits) == fmt.Sprint(others) {
				t.Errorf("%s and %s have the same bits", a, b)
			}
		}
	}
}

func TestKernelsOfAFamilyGiveTheSameBitsOfEveryPacking(t *testing.T) {
	sweep.Full(t)
	sizes := map[string]int{} // of families; a family of one has nothing to differ from
	eachFamily(func(family string, _ cpu.ISA) { sizes[family]++ })
	if slices.Max(slices.Collect(maps.Values(sizes))) == 1 {
		t.Skip("no two instruction sets here are of one family")
	}
	workers := pool.New(2)
	defer workers.Close()
	plain := synthetic.Shape{Name: "plain", Hidden: 256, FFN: 512, Layers: 1, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 300, Context: 512, RopeBase: 10000, Arch: synthetic.Llama}
	odd := plain
	odd.Hidden, odd.FFN, odd.HeadDim, odd.Vocab = 160, 288, 40, 333
	delta := recurrentShape
	wide := recurrentShape
	wide.Hidden, wide.FFN, wide.HeadDim, wide.Delta.Width = 128, 128, 64, 32
	mixture := plain
	mixture.FFN, mixture.Experts = 256, synthetic.Experts{Count: 8, Used: 2, FFN: 256}
	mixture.Arch = synthetic.Qwen3MoE
	for _, c := range []struct {
		shape synthetic.Shape
		kinds []gguf.Type
	}{
		{plain, []gguf.Type{gguf.F16, gguf.Q4_K, gguf.Q8_0, gguf.MXFP4, gguf.TQ2_0, gguf.Q2_0, gguf.Q1_0, gguf.F32, gguf.BF16, gguf.Q4_0, gguf.Q6_K, gguf.TQ1_0, gguf.PQ2_0, gguf.PTQ1_0}},
		{odd, []gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.MXFP4}},
		{delta, []gguf.Type{gguf.F16, gguf.Q8_0}},
		{wide, []gguf.Type{gguf.Q1_0}},
		{mixture, []gguf.Type{gguf.TQ2_0, gguf.Q4_K}},
	} {
		for _, kind := range c.kinds[:sweep.Of(t, (len(c.kinds)+1)/2, len(c.kinds))] {
			var file bytes.Buffer
			if err := synthetic.Write(&file, c.shape, synthetic.Options{Blocks: kind, Head: gguf.F16, Seed: 4}); err != nil {
				t.Fatalf("%s of %v: %v", c.shape.Name, kind, err)
			}
			f, err := gguf.Parse(file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			var names []string
			eachFamily(func(family string, isa cpu.ISA) {
				if sizes[family] == 1 {
					return
				}
				m, err := loadModel(f, LoadOptions{Pool: workers})
				if err != nil {
					t.Fatal(err)
				}
				defer m.close()
				got[family] = append(got[family], bitsOf(t, m, kv.F16, someTokens(69, 250)))
				names = append(names, isa.String())
			})
			for family, bits := range got {
				if len(slices.Compact(bits)) > 1 {
					t.Errorf("%s of %v: %s gives the hashes %v (of %v)", c.shape.Name, kind, family, bits, names)
				}
			}
		}
	}
}
