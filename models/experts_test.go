package models

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// manyExperts is a shape whose steps have groups of rows of all sizes.
var manyExperts = synthetic.Shape{Name: "many experts", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 512,
	RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 24, Used: 3, FFN: 256}}

// synthetized writes a model of random weights of a storage type.
func synthetized(t *testing.T, shape synthetic.Shape, blocks gguf.Type) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "model.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(synthetic.Write(f, shape, synthetic.Options{Blocks: blocks, Head: gguf.F16, Seed: 7}), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAMixtureGivesEverySequenceTheBitsItGetsAlone(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	for _, blocks := range []gguf.Type{gguf.TQ2_0, gguf.Q4_K, gguf.MXFP4, gguf.Q8_0, gguf.F16} {
		t.Run(blocks.String(), func(t *testing.T) {
			path := synthetized(t, manyExperts, blocks)
			together(t, path, kv.F16, conversations(t, path, kv.F16, 9), false)
		})
	}
}

func TestExpertsAreOfEveryStorageType(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	for _, blocks := range []gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.MXFP4, gguf.NVFP4, gguf.Q4_K, gguf.Q6_K, gguf.TQ1_0, gguf.TQ2_0, gguf.Q1_0, gguf.Q2_0, gguf.PQ2_0, gguf.PTQ1_0} {
		t.Run(blocks.String(), func(t *testing.T) {
			shape := manyExperts
			shape.Experts.Count, shape.Experts.Used = 6, 6 // routing cannot differ
			path := synthetized(t, shape, blocks)
			tokens := []int32{3, 1, 4, 1, 5, 9, 2, 6}
			got := newRunner(t, openModel(t, path, LoadOptions{}), kv.F32).feed(len(tokens), tokens...)
			want := newRunner(t, openModel(t, path, LoadOptions{Exact: true}), kv.F32).feed(len(tokens), tokens...)
			if e := nmse(got, want); !(e < 3e-3) {
				t.Errorf("NMSE %.3g against float32", e)
			}
		})
	}
}

// scaledExperts writes a mixture of NVFP4 whose experts have scales of their own; widened, as float32
// that has them in the weights.
func scaledExperts(t *testing.T, path string, widened bool) (out string) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var tensors []gguf.Tensor
	for i := range f.Tensors {
		w, err := f.Tensors[i].Load(0, f.Tensors[i].Rows(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Dims = f.Tensors[i].Dims
		stem, experts := strings.CutSuffix(w.Name, "_exps.weight")
		if !experts {
			tensors = append(tensors, *w)
			continue
		}
		n, scales := w.Dims[2], []byte(nil)
		values := make([]float32, w.Len())
		if err := w.Dequantize(values, 0); err != nil {
			t.Fatal(err)
		}
		for e := range n {
			scale := 0.5 + float32(e*len(stem)%7)/8
			scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(scale))
			for j := range values[:w.Len()/n] {
				values[e*w.Len()/n+j] *= scale
			}
		}
		if widened {
			raw := make([]byte, 0, 4*len(values))
			for _, x := range values {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			tensors = append(tensors, gguf.Tensor{Name: w.Name, Type: gguf.F32, Dims: w.Dims, Data: raw})
			continue
		}
		tensors = append(tensors, *w)
		for _, name := range []string{"_exps.scale", "_exps.input_scale"} {
			tensors = append(tensors, gguf.Tensor{Name: stem + name, Type: gguf.F32, Dims: []int{n}, Data: scales})
		}
	}
	out = filepath.Join(t.TempDir(), "scaled.gguf")
	var raw bytes.Buffer
	if err := errors.Join(gguf.Write(&raw, f.Metadata, tensors), os.WriteFile(out, raw.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestExpertsOfNVFP4AreMultipliedByTheirScales(t *testing.T) {
	sweep.NoEmulator(t)
	shape := manyExperts
	shape.Experts.Count = 5
	path, tokens := synthetized(t, shape, gguf.NVFP4), []int32{3, 1, 4, 1, 5, 9, 2, 6}
	run := func(path string, opt LoadOptions) []float32 {
		m := openModel(t, path, opt)
		if stored := m.(*executor).graph.store != nil; stored != (opt.ExpertMemory > 0) {
			t.Fatalf("with %+v experts stay in the file: %t", opt, stored)
		}
		return newRunner(t, m, kv.F32).feed(len(tokens), tokens...)
	}
	scaled := scaledExperts(t, path, false)
	want := run(scaledExperts(t, path, true), LoadOptions{Exact: true})
	compareBits(t, "exact", run(scaled, LoadOptions{Exact: true}), want)
	packed := run(scaled, LoadOptions{})
	if e := nmse(packed, want); !(e < 3e-3) {
		t.Errorf("NMSE %.3g against float32", e)
	}
	slot := slotBytes(t, path, shape.Experts.FFN, shape.Hidden)
	compareBits(t, "from the file", run(scaled, LoadOptions{ExpertMemory: 3 * slot}), packed)
}

func TestAStepOfAMixtureAllocatesNothing(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	for _, blocks := range []gguf.Type{gguf.TQ2_0, gguf.Q4_K, gguf.F16} {
		r := newRunner(t, openModel(t, synthetized(t, manyExperts, blocks), oneThread(t)), kv.F16)
		tokens := make([]int32, 40)
		for range 3 {
			r.feed(1, tokens...)
		}
		for range 40 {
			r.feed(1, 5)
		}
		if n := testing.AllocsPerRun(30, func() { r.feed(1, 5) }); n != 0 {
			t.Errorf("%v: a token allocates %v times", blocks, n)
		}
	}
}

// countingBackend counts the products of each matrix, and their rows.
type countingBackend struct {
	*kernels.CPU
	mu    sync.Mutex
	count map[*matrix.Matrix]int
	rows  map[*matrix.Matrix]int
}

type countingLinear struct {
	kernels.Linear
	b *countingBackend
	w *matrix.Matrix
}

func (b *countingBackend) Load(w *matrix.Matrix) (kernels.Linear, error) {
	l, err := b.CPU.Load(w)
	return countingLinear{l, b, w}, err
}

func (l countingLinear) Mul(y []float32, x *kernels.Acts) {
	l.b.mu.Lock()
	l.b.count[l.w]++
	l.b.rows[l.w] += x.N()
	l.b.mu.Unlock()
	l.Linear.Mul(y, x)
}

func TestAnExpertIsReadOnceAStepOrNotAtAll(t *testing.T) {
	sweep.NoEmulator(t)
	p := pool.New(2)
	defer p.Close()
	shape := manyExperts
	shape.Experts.FFN = 768 // no other matrix has as many rows
	for _, local := range []bool{true, false} {
		b := &countingBackend{CPU: kernels.NewCPU(p), count: map[*matrix.Matrix]int{}, rows: map[*matrix.Matrix]int{}}
		m := openModel(t, synthetized(t, shape, gguf.Q4_K), LoadOptions{Pool: p, Backend: b})
		m.(*executor).graph.layers[0].ffn.(*mixture).pass.local = local
		r := newRunner(t, m, kv.F16)
		for _, tokens := range []int{1, 2, 33} {
			clear(b.count)
			clear(b.rows)
			r.feed(tokens, slices.Repeat([]int32{7}, tokens)...)
			read, rows := 0, 0
			for w, n := range b.count {
				if w.Rows != 2*shape.Experts.FFN {
					continue
				}
				read++
				rows += b.rows[w]
				if n != 1 {
					t.Errorf("%d tokens: an expert took part in %d products", tokens, n)
				}
			}
			if want := tokens * shape.Experts.Used * shape.Layers; rows != want || tokens == 1 && read != want {
				t.Errorf("%d tokens: %d experts multiplied %d rows, want %d", tokens, read, rows, want)
			}
		}
	}
}

func TestAMixtureThatCannotRunIsRefusedByName(t *testing.T) {
	sweep.NoEmulator(t)
	p := pool.New(1)
	defer p.Close()
	nan := func(name string) func([]gguf.Tensor) {
		return func(ts []gguf.Tensor) {
			t := &ts[slices.IndexFunc(ts, func(t gguf.Tensor) bool { return t.Name == name })]
			t.Data = slices.Clone(t.Data)
			copy(t.Data[64:], []byte{0, 0, 0xc0, 0x7f})
		}
	}
	for _, c := range []struct {
		more   gguf.Metadata
		change func([]gguf.Tensor)
		want   string
	}{
		{gguf.Metadata{"expert_count": nil}, nil, "qwen2moe.expert_count is missing"},
		{gguf.Metadata{"expert_count": uint32(0)}, nil, "qwen2moe.expert_count is 0"},
		{gguf.Metadata{"expert_count": uint32(math.MaxUint32)}, nil, "qwen2moe.expert_count is 4294967295"},
		{gguf.Metadata{"expert_count": uint32(7)}, nil, "tensor blk.0.ffn_gate_inp.weight has shape [64 6], want [64 7]"},
		{gguf.Metadata{"expert_used_count": nil}, nil, "qwen2moe.expert_used_count is missing"},
		{gguf.Metadata{"expert_used_count": uint32(0)}, nil, "qwen2moe.expert_used_count is 0"},
		{gguf.Metadata{"expert_used_count": uint32(7)}, nil, "qwen2moe.expert_used_count is 7"},
		{gguf.Metadata{"expert_feed_forward_length": uint32(31)}, nil, "tensor blk.0.ffn_gate_exps.weight has shape [64 32 6], want [64 31 6]"},
		{gguf.Metadata{"expert_feed_forward_length": uint32(0)}, nil, "expert_feed_forward_length is 0"},
		{gguf.Metadata{"expert_shared_feed_forward_length": uint32(9)}, nil, "tensor blk.0.ffn_gate_shexp.weight has shape"},
		{gguf.Metadata{"expert_gating_func": uint32(4)}, nil, "expert_gating_func is 4"},
		{gguf.Metadata{"expert_weights_norm": uint32(1)}, nil, "expert_weights_norm is 1"},
		{gguf.Metadata{"expert_weights_scale": float32(math.NaN())}, nil, "expert_weights_scale is NaN"},
		{gguf.Metadata{"expert_weights_scale": float32(-1)}, nil, "expert_weights_scale is -1"},
		{gguf.Metadata{"expert_weights_scale": float64(1e300)}, nil, "expert_weights_scale is 1e+300"},
		{gguf.Metadata{"attention.clamp_kqv": float32(8)}, nil, "attention.clamp_kqv is 8"},
		{gguf.Metadata{"expert_group_count": uint32(2)}, nil, "qwen2moe.expert_group_count is 2: groups of experts are not supported"},
		{gguf.Metadata{"leading_dense_block_count": uint32(1)}, nil, "qwen2moe.leading_dense_block_count is 1"},
		{gguf.Metadata{"moe_every_n_layers": uint32(2)}, nil, "qwen2moe.moe_every_n_layers is 2"},
		{nil, nan("blk.1.ffn_gate_inp.weight"), "tensor blk.1.ffn_gate_inp.weight: row 0 holds a number that is infinite or NaN"},
		{nil, nan("blk.1.ffn_down_exps.weight"), "tensor blk.1.ffn_down_exps.weight: row 0 holds a number that is infinite or NaN"},
		{nil, nan("blk.0.ffn_gate_inp_shexp.weight"), "tensor blk.0.ffn_gate_inp_shexp.weight: element 16 is NaN"},
		{nil, func(ts []gguf.Tensor) {
			ts[slices.IndexFunc(ts, func(t gguf.Tensor) bool { return t.Name == "blk.0.ffn_up_exps.weight" })].Name = "blk.0.ffn_up.0.weight"
		}, "tensor blk.0.ffn_up.0.weight has shape [64 32 6], want [64 32]"},
		{nil, func(ts []gguf.Tensor) {
			ts[slices.IndexFunc(ts, func(t gguf.Tensor) bool { return t.Name == "blk.0.ffn_up_exps.weight" })].Name = "blk.0.exp_probs_b.bias"
		}, "tensor blk.0.ffn_up_exps.weight is missing"},
	} {
		tiny := &tinyMixture{arch: "qwen2moe", halves: true, shared: true, sharedGated: true, experts: 6, used: 2, more: c.more}
		f := tiny.file(t)
		if c.change != nil {
			ts := slices.Clone(f.Tensors)
			c.change(ts)
			f = tiny.parse(t, ts)
		}
		if _, err := loadModel(f, LoadOptions{Pool: p}); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("loading gave %v, want an error that says %q", err, c.want)
		}
	}
}

func TestAMixtureWithSeveralFaultsIsAlwaysRefusedForTheSameOne(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for _, c := range []struct {
		more gguf.Metadata
		want string
	}{
		{gguf.Metadata{"expert_group_count": uint32(2), "expert_chunk_size": uint32(2), "expert_unheard_of": uint32(2)}, "qwen2moe.expert_chunk_size is not supported"},
		{gguf.Metadata{"leading_dense_block_count": uint32(1), "moe_every_n_layers": uint32(2), "interleave_moe_layer_step": uint32(2)}, "qwen2moe.leading_dense_block_count is 1"},
	} {
		tiny := &tinyMixture{arch: "qwen2moe", halves: true, shared: true, sharedGated: true, experts: 6, used: 2, more: c.more}
		f := tiny.file(t)
		for range 30 {
			if _, err := loadModel(f, LoadOptions{Pool: p}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("loading gave %v, want an error that says %q", err, c.want)
			}
		}
	}
}

func TestWhoeverSeesWhatRowsChooseChangesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	path := synthetized(t, manyExperts, gguf.TQ2_0)
	tokens := []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}
	want := newRunner(t, openModel(t, path, LoadOptions{}), kv.F16).feed(len(tokens), tokens...)
	k, layers := manyExperts.Experts.Used, manyExperts.Layers
	seen, calls := make([][]int32, layers), 0
	see := func(layer int, experts []int32, weights []float32) {
		if layer != calls%layers {
			t.Errorf("call %d is of layer %d", calls, layer)
		}
		calls++
		for i := 0; i < len(experts); i += k {
			sum := float32(0)
			for j, e := range experts[i : i+k] {
				sum += weights[i+j]
				if slices.Contains(experts[i:i+j], e) {
					t.Errorf("layer %d: row %d chose %v", layer, i/k, experts[i:i+k])
				}
			}
			if math.Abs(float64(sum)-1) > 1e-6 {
				t.Errorf("layer %d: row %d has weights of %v together", layer, i/k, sum)
			}
		}
		seen[layer] = append(seen[layer], experts...)
	}
	m := openModel(t, path, LoadOptions{Routed: see})
	if got := newRunner(t, m, kv.F16).feed(len(tokens), tokens...); !slices.Equal(got, want) {
		t.Error("logits differ where somebody sees the experts")
	}
	together := slices.Clone(seen)
	if calls != layers || len(seen[0]) != k*len(tokens) {
		t.Fatalf("%d calls and %d choices for a step of %d tokens", calls, len(seen[0]), len(tokens))
	}
	clear(seen)
	for one, r := 0, newRunner(t, m, kv.F16); one < len(tokens); one++ {
		r.feed(1, tokens[one])
	}
	for i := range layers {
		if !slices.Equal(seen[i], together[i]) {
			t.Errorf("layer %d: token by token experts %v were seen, together %v", i, seen[i], together[i])
		}
	}
}

func TestTheBestExpertsAreChosenTheFirstOfEquals(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		r       routing
		logits  []float32
		experts []int32
		weights []float32
		prefer  []float32
	}{
		{routing{4, 2, softmaxGating, true, 1, 0, 0}, []float32{0, 1, 0, 1}, []int32{1, 3}, []float32{0.5, 0.5}, nil},
		{routing{4, 3, softmaxGating, true, 2, 0, 0}, []float32{5, 5, 5, 5}, []int32{0, 1, 2}, []float32{2. / 3, 2. / 3, 2. / 3}, nil},
		{routing{4, 2, softmaxGating, false, 1, 0, 0}, []float32{0, 0, 0, 0}, []int32{0, 1}, []float32{0.25, 0.25}, nil},
		{routing{3, 1, sigmoidGating, false, 1, 0, 0}, []float32{-1, 0, -2}, []int32{1}, []float32{0.5}, nil},
		{routing{3, 2, chosenSoftmaxGating, false, 1, 0, 0}, []float32{-1000, 0, 0}, []int32{1, 2}, []float32{0.5, 0.5}, nil},
		{routing{3, 2, softmaxGating, true, 1, 0, 0}, []float32{1e30, -1e30, 1e30}, []int32{0, 2}, []float32{0.5, 0.5}, nil},
		{routing{3, 2, sparsemixerGating, true, 1, 0, 0}, []float32{0.5, 1, 0.99}, []int32{1, 2}, []float32{0.5025, 1}, nil}, // 2 % apart count
		{routing{3, 2, sparsemixerGating, true, 2, 0, 0}, []float32{-1, -1.01, -1.03}, []int32{0, 1}, []float32{1.005, 1.0099996}, nil},
		{routing{3, 2, sparsemixerGating, true, 1, 0, 0}, []float32{0, 0, 0}, []int32{0, 1}, []float32{1. / 3, 0.5}, nil},
		{routing{4, 2, sparsemixerGating, true, 1, 0, 0}, []float32{nan, 1, nan, 2}, []int32{0, 1}, []float32{nan, nan}, nil},
		{routing{4, 2, softmaxGating, true, 1, 0, 0}, []float32{nan, 1, nan, 2}, []int32{0, 1}, []float32{nan, nan}, nil}, // but they are two
		{routing{3, 2, sigmoidGating, false, 1, 0, 0}, []float32{0, 1, -1}, []int32{2, 0}, []float32{0.26894143, 0.5}, []float32{0, -0.3, 0.9}},
		{routing{3, 2, sigmoidGating, true, 2, 0, 0}, []float32{0, 0, 0}, []int32{1, 0}, []float32{1, 1}, []float32{0, 0.1, 0}},
		{routing{4, 2, softmaxGating, false, 1, 2, 1}, []float32{0, 1, 1, 1}, []int32{1, 0}, []float32{0.29692274, 0.10923178}, nil}, // the best of each group
		{routing{4, 2, sigmoidGating, true, 1, 2, 1}, []float32{0, 1, 1, 1}, []int32{2, 3}, []float32{0.5, 0.5}, nil},                // the best two
		{routing{4, 2, softmaxGating, true, 1, 2, 1}, []float32{nan, nan, nan, nan}, []int32{0, 1}, []float32{nan, nan}, nil},
	} {
		experts, weights := make([]int32, c.r.chosen), make([]float32, c.r.chosen)
		c.r.route(experts, weights, c.logits, c.prefer)
		if c.logits[0] == c.logits[0] && !slices.Equal(experts, c.experts) || experts[0] == experts[len(experts)-1] && len(experts) > 1 {
			t.Errorf("of %v experts %v are chosen, want %v", c.logits, experts, c.experts)
		}
		if fmt.Sprint(weights) != fmt.Sprint(c.weights) {
			t.Errorf("of %v weights are %v, want %v", c.logits, weights, c.weights)
		}
	}
}
