package npu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// storage describes the weights of a matrix on the device.
type storage struct {
	bits, group int // a group of 0: one scale a row or matrix, which the host keeps
	offsets     bool
	levels      bool // codes stand for one of sixteen values
}

// The storages of shapes.
var (
	ternary = storage{bits: 2}
	oneBit  = storage{bits: 1, group: 128}
	gptq    = storage{bits: 4, group: 64, offsets: true} // as T-MAN quantises: per block, asymmetric
	q4      = storage{bits: 4, group: 32}                // Q4_0, as the test-time scaling paper
)

// shape is the size of a model, for planning without its file.
type shape struct {
	name                      string
	hidden, ffn, layers       int
	heads, kv, headDim, vocab int
	storage
	experts synthetic.Experts // in place of a feed-forward
}

var dense synthetic.Experts // there are none

// papers are the models that the papers measure and synthetic lacks.
var papers = []shape{
	{"llama-3.1-8b", 4096, 14336, 32, 32, 8, 128, 128256, gptq, dense},
	{"qwen3-8b", 4096, 12288, 36, 32, 8, 128, 151936, gptq, dense},
	{"qwen2.5-1.5b", 1536, 8960, 28, 12, 2, 128, 151936, q4, dense},
	{"qwen2.5-3b", 2048, 11008, 36, 16, 2, 128, 151936, q4, dense},
	{"qwen2.5-7b", 3584, 18944, 28, 28, 4, 128, 152064, q4, dense},
	{"llama-3.2-1b", 2048, 8192, 16, 32, 8, 64, 128256, q4, dense},
	{"llama-3.2-3b", 3072, 8192, 28, 24, 8, 128, 128256, q4, dense},
	// Of NPUMoE, Table 1; sizes as in the models' configurations.
	{"phi-3.5-moe", 4096, 0, 32, 32, 8, 128, 32064, gptq, synthetic.Experts{Count: 16, Used: 2, FFN: 6400}},
	{"phi-tiny-moe", 4096, 0, 32, 16, 4, 128, 32064, gptq, synthetic.Experts{Count: 16, Used: 2, FFN: 448}},
}

// shapes returns all shapes with a name: of random models, and the papers'.
func shapes() []shape {
	var list []shape
	for _, s := range synthetic.Shapes() {
		if s.Arch == synthetic.Qwen35 { // most of its layers are no attention
			continue
		}
		kept := ternary
		if strings.HasPrefix(s.Name, "bonsai") {
			kept = oneBit
		}
		list = append(list, shape{s.Name, s.Hidden, s.FFN, s.Layers, s.Heads, s.KVHeads, s.HeadDim, s.Vocab, kept, s.Experts})
	}
	return append(list, papers...)
}

// Shapes returns the names that Shape knows.
func Shapes() []string {
	var names []string
	for _, s := range shapes() {
		names = append(names, s.name)
	}
	return names
}

// Shape returns the model of that name.
func Shape(name string) (soc.Model, bool) {
	list := shapes()
	i := slices.IndexFunc(list, func(s shape) bool { return s.name == name })
	if i < 0 {
		return soc.Model{}, false
	}
	return list[i].model(), true
}

func (s shape) model() soc.Model {
	m := soc.Model{Name: s.name, Layers: s.layers, Heads: s.heads, KVHeads: s.kv, HeadDim: s.headDim, Experts: s.experts.Count}
	q, kv := s.heads*s.headDim, s.kv*s.headDim
	for _, x := range []struct {
		name       string
		rows, cols int
	}{
		{"attn_q", q, s.hidden}, {"attn_k", kv, s.hidden}, {"attn_v", kv, s.hidden}, {"attn_output", s.hidden, q},
		{"ffn_gate", s.ffn, s.hidden}, {"ffn_up", s.ffn, s.hidden}, {"ffn_down", s.hidden, s.ffn},
	} {
		if s.experts.Count > 0 && strings.HasPrefix(x.name, "ffn_") {
			continue
		}
		m.Matrices = append(m.Matrices, s.matrix(x.name, x.rows, x.cols, s.layers))
	}
	m.Matrices = append(m.Matrices, q4.matrix("output", s.vocab, s.hidden, 1))
	return m
}

// matrix returns a weight matrix of that storage.
func (s storage) matrix(name string, rows, cols, count int) soc.Matrix {
	x := soc.Matrix{Name: name, M: rows, K: cols, Bits: s.bits, Group: s.group, Offsets: s.offsets, Levels: s.levels, Count: count, Input: name}
	if x.Group == 0 {
		x.Group = cols
	}
	for input, names := range map[string][]string{
		"attention input": {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_gate"}, "feed-forward input": {"ffn_gate", "ffn_up"}, soc.Logits: {"output"},
	} {
		if slices.Contains(names, name) {
			x.Input = input
		}
	}
	return x
}

// Head says where logits are computed.
type Head string

// The places. This project's backend leaves to the CPU what the device does not hold exactly. The device has it in four bits, or
// the CPU, as in the test-time scaling paper.
const (
	HeadAuto Head = "auto"
	HeadNPU  Head = "npu"
	HeadCPU  Head = "cpu"
)

// Heads lists them.
func Heads() []string { return []string{string(HeadAuto), string(HeadNPU), string(HeadCPU)} }

// Change alters how a model is stored and where its head is computed.
type Change struct {
	Bits int // of the layers' weights, in groups of 64 with offsets; 0: as they are
	Head Head
}

// Apply makes the change.
func (c Change) Apply(m *soc.Model) error {
	for i := range m.Matrices {
		x := &m.Matrices[i]
		if x.Input == soc.Logits {
			switch c.Head {
			case HeadNPU:
				*x = q4.matrix(x.Name, x.M, x.K, x.Count)
			case HeadCPU:
				x.Host = true
			}
			continue
		}
		switch c.Bits {
		case 0:
		case 1, 2, 4:
			x.Bits, x.Group, x.Offsets, x.Host = c.Bits, gptq.group, true, false
		default:
			return fmt.Errorf("weights of %d bits: the device has 1, 2 and 4", c.Bits)
		}
	}
	return nil
}
