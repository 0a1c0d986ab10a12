package models

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// hadamardKey begins the keys of rotations.
const hadamardKey = "prism.hadamard."

func TestRotatedWeightsGiveTheLogitsOfTheOthers(t *testing.T) {
	sweep.NoEmulator(t)
	for _, tied := range []bool{true, false} {
		for _, mode := range []string{"explicit", "identity"}[:sweep.Cases(1, 2)] {
			for _, grouped := range []bool{false, true} {
				t.Run(fmt.Sprintf("tied %t, signs %s, grouped %t", tied, mode, grouped), func(t *testing.T) {
					shape := recurrentShape
					shape.TiedEmbedding = tied
					path := recurrentModel(t, shape, gguf.F32)
					want := newRunner(t, openModel(t, path, LoadOptions{}), kv.F32).feed(20, tokensOf(20, 3)...)
					turned := rotated(t, path, mode == "explicit", grouped)
					got := newRunner(t, openModel(t, turned, LoadOptions{}), kv.F32).feed(20, tokensOf(20, 3)...)
					if e := nmse(got, want); e > 1e-10 {
						t.Errorf("NMSE %.3g", e)
					}
				})
			}
		}
	}
}

func TestRotationsThatDoNotFitAreRefused(t *testing.T) {
	sweep.NoEmulator(t)
	path := rotated(t, recurrentModel(t, recurrentShape, gguf.F32), true, true)
	pool := pool.New(1)
	defer pool.Close()
	without := func(name string) func(names []string) []string {
		return func(names []string) []string {
			return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
		}
	}
	for _, c := range []struct {
		key   string
		value any // or a change of a list of names
		want  string
	}{
		{"transform", "dct", `transform is "dct", want`},
		{"axis", "output", `axis is "output", want`},
		{"sign_mode", "random", `sign_mode is "random"`},
		{"block_size", int64(24), "block_size is 24, want a power of two"},
		{"block_size", int64(64), "96 columns are no whole blocks"},
		{"block_size", int64(1) << 40, "want a power of two"},
		{"gdn_v_grouped", "yes", "gdn_v_grouped is yes, want true or false"},
		{"tied_output", false, "version is 2 with prism.hadamard.tied_output false"},
		{"sign_widths", []int64{64}, "96 numbers more than"},
		{"sign_widths", []int64{64, 64}, "do not make sign vectors of the widths [64 64]"},
		{"sign_widths", []int64{64, 1 << 50}, "do not make sign vectors"},
		{"sign_widths", []int64{96, 32, 32}, "do not make sign vectors"},
		{"sign_widths", []int64{160}, "has no signs for the 64 columns of"},
		{"sign_values", slices.Repeat([]int8{2}, 160), "sign_values holds 2"},
		{"weight_names", without("blk.0.attn_gate.weight"), "has some of [blk.0.attn_qkv.weight blk.0.attn_gate.weight]"},
		{"weight_names", func(n []string) []string { return append(slices.Clone(n), "blk.9.x") }, `names "blk.9.x", which is missing`},
		{"weight_names", func(n []string) []string { return append(slices.Clone(n), "blk.0.ssm_beta.weight") }, "names blk.0.ssm_beta.weight, which is not supported there"},
		{"inverse_weight_names", func(n []string) []string { return append(slices.Clone(n), "output_norm.weight") }, "names output_norm.weight, which is not supported there"},
	} {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if change, ok := c.value.(func([]string) []string); ok {
			names, _ := f.Metadata.Strings(hadamardKey + c.key)
			f.Metadata[hadamardKey+c.key] = change(names)
		} else {
			f.Metadata[hadamardKey+c.key] = c.value
		}
		if _, err := loadModel(f, LoadOptions{Pool: pool}); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: loading gave %v, want an error that says %q", c.key, err, c.want)
		}
		f.Close()
	}
}

func TestRotationsWithSeveralFaultsAreAlwaysRefusedForTheSameOne(t *testing.T) {
	sweep.NoEmulator(t)
	path := rotated(t, recurrentModel(t, recurrentShape, gguf.F32), true, true)
	pool := pool.New(1)
	defer pool.Close()
	add := func(md gguf.Metadata, key string, more ...string) {
		names, _ := md.Strings(hadamardKey + key)
		md[hadamardKey+key] = append(slices.Clone(names), more...)
	}
	for _, c := range []struct {
		change func(md gguf.Metadata)
		want   string
	}{
		{func(md gguf.Metadata) {
			md[hadamardKey+"one"], md[hadamardKey+"two"], md[hadamardKey+"more"] = "", "", ""
		}, "prism.hadamard.more is not supported"},
		{func(md gguf.Metadata) {
			add(md, "weight_names", "blk.0.ssm_beta.weight", "blk.0.ssm_alpha.weight")
			add(md, "inverse_weight_names", "output_norm.weight")
		}, "prism.hadamard.weight_names names blk.0.ssm_alpha.weight, which is not supported there"},
	} {
		for range 20 {
			f, err := gguf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			c.change(f.Metadata)
			_, err = loadModel(f, LoadOptions{Pool: pool})
			f.Close()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("loading gave %v, want an error that says %q", err, c.want)
			}
		}
	}
}

// rotated writes a copy of a model whose matrices are stored as PrismML's converter
// stores them, in blocks of 32, and returns its path.
func rotated(t *testing.T, path string, explicit, grouped bool) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const block = 32
	d := recurrentShape.Delta
	var names, inverse []string
	var signs []int8
	at := map[int][]int8{}
	for _, width := range []int{64, 96} {
		own := make([]int8, width)
		for i := range own {
			own[i] = int8(1 - 2*(i*i/3%2))
		}
		at[width], signs = own, append(signs, own...)
	}
	var sources []gguf.Tensor
	for _, x := range f.Tensors {
		v := make([]float32, x.Len())
		if err := x.Dequantize(v, 0); err != nil {
			t.Fatal(err)
		}
		folds := len(x.Dims) == 2 && !strings.Contains(x.Name, "ssm_conv1d") && !strings.Contains(x.Name, "alpha") && !strings.Contains(x.Name, "beta")
		switch {
		case x.Name == "token_embd.weight":
			inverse = append(inverse, x.Name)
		case folds:
			names = append(names, x.Name)
		}
		for i := 0; folds && i < len(v); i += x.Cols() {
			row := v[i : i+x.Cols()]
			if grouped && strings.HasSuffix(x.Name, "ssm_out.weight") {
				row = slices.Clone(row)
				for h := range d.ValueHeads {
					to := h%d.KeyHeads*(d.ValueHeads/d.KeyHeads) + h/d.KeyHeads
					copy(v[i+to*d.Width:i+(to+1)*d.Width], row[h*d.Width:(h+1)*d.Width])
				}
				row = v[i : i+x.Cols()]
			}
			for j := range row {
				if explicit {
					row[j] *= float32(at[len(row)][j])
				}
			}
			slowHadamard(row, block)
		}
		sources = append(sources, gguf.Tensor{Name: x.Name, Type: gguf.F32, Dims: x.Dims, Data: bytesOf(v)})
	}
	md := maps.Clone(f.Metadata)
	maps.Copy(md, gguf.Metadata{
		"prism.hadamard.version": int64(1), "prism.hadamard.transform": "normalized-sylvester-walsh-hadamard",
		"prism.hadamard.axis": "input-last-dimension", "prism.hadamard.block_size": int64(block),
		"prism.hadamard.sign_mode": "identity", "prism.hadamard.weight_names": names, "prism.hadamard.inverse_weight_names": inverse,
	})
	if explicit {
		md["prism.hadamard.sign_mode"] = "explicit"
		md["prism.hadamard.sign_widths"], md["prism.hadamard.sign_values"] = []int64{64, 96}, signs
	}
	if grouped {
		md["prism.hadamard.gdn_v_grouped"] = true
	}
	if f.Tensor("output.weight") == nil {
		md["prism.hadamard.version"], md["prism.hadamard.tied_output"] = uint32(2), true
	}
	out := filepath.Join(t.TempDir(), "rotated.gguf")
	w, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gguf.Write(w, md, sources), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// slowHadamard is the normalised Walsh-Hadamard transform of blocks of x, by its
// definition.
func slowHadamard(x []float32, block int) {
	in := slices.Clone(x)
	for i := range x {
		sum := 0.0
		for j := range block {
			sum += float64(1-2*(bits.OnesCount(uint(i%block&j))%2)) * float64(in[i/block*block+j])
		}
		x[i] = float32(sum / math.Sqrt(float64(block)))
	}
}

func bytesOf(v []float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
