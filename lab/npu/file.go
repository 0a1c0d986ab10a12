package npu

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models/gguf"
)

var ofLayer = regexp.MustCompile(`^blk\.\d+\.((?:shortconv\.)?\w+)\.weight$`)

// narrow is the least number of rows of a matrix that is worth a strip; smaller ones
// (gates of recurrent layers, convolutions) stay on the CPU and cost nothing here.
const narrow = 32

// FromFile returns the model of a GGUF file, without the experts of its mixtures.
func FromFile(name string, f *gguf.File) (soc.Model, error) {
	m := soc.Model{Name: name}
	if err := readHeads(&m, f); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	if err := readMatrices(&m, f); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	head := f.Tensor("output.weight")
	if head == nil {
		head = f.Tensor("token_embd.weight")
	}
	if head == nil || len(m.Matrices) == 0 {
		return m, fmt.Errorf("%s: the file has no matrices of a language model", name)
	}
	if kind, _ := number(f, "pooling_type"); kind != 4 { // of reward models: one row
		m.Matrices = append(m.Matrices, matrixOf("output", head))
	}
	return m, nil
}

// number returns a number of an architecture's metadata.
func number(f *gguf.File, key string) (int, bool) {
	arch, _ := f.Metadata.String("general.architecture")
	return f.Metadata.Int(arch + "." + key)
}

// readHeads sets the numbers of heads and experts, and the sizes of heads and of recurrent states.
func readHeads(m *soc.Model, f *gguf.File) error {
	number := func(key string) int {
		n, _ := number(f, key)
		return n
	}
	m.Heads, m.Experts = number("attention.head_count"), max(0, number("expert_count"))
	m.KVHeads = cmp.Or(number("attention.head_count_kv"), m.Heads)
	arch, _ := f.Metadata.String("general.architecture")
	if list, ok := f.Metadata.Ints(arch + ".attention.head_count_kv"); ok && len(list) > 0 { // one a layer, 0 of short convolutions
		m.KVHeads = slices.Max(list)
	}
	const most = 1 << 16
	if m.Heads < 1 || m.Heads > most || m.KVHeads < 1 || m.Heads%m.KVHeads != 0 {
		return fmt.Errorf("%d heads and %d of keys: no model to plan", m.Heads, m.KVHeads)
	}
	m.HeadDim = cmp.Or(number("attention.key_length"), number("embedding_length")/m.Heads)
	if m.HeadDim < 1 || m.HeadDim > most {
		return fmt.Errorf("heads of %d elements", m.HeadDim)
	}
	if heads, width := number("ssm.time_step_rank"), number("ssm.state_size"); f.Tensor("blk.0.ssm_out.weight") != nil && f.Tensor("blk.0.ssm_beta.weight") != nil {
		if heads < 1 || width < 1 || max(heads, width) > 1<<12 {
			return fmt.Errorf("%d states of %d rows: no model to plan", heads, width)
		}
		m.State = 4 * heads * width * width
	}
	return nil
}

// readMatrices counts the layers and their matrices, equal ones once.
func readMatrices(m *soc.Model, f *gguf.File) error {
	at := map[string]int{}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		found := ofLayer.FindStringSubmatch(t.Name)
		switch {
		case found == nil || len(t.Dims) == 1:
			continue
		case len(t.Dims) > 2 && strings.HasSuffix(found[1], "_exps"):
			continue // planned apart: see Mixture
		case len(t.Dims) > 2:
			return fmt.Errorf("tensor %s has %d dimensions: no matrix to plan", t.Name, len(t.Dims))
		}
		switch {
		case found[1] == "attn_k" || found[1] == "attn_qkv" && f.Tensor("blk.0.ssm_out.weight") == nil:
			m.Layers++
		case found[1] == "shortconv.in_proj":
			m.Convs++
		case found[1] == "ssm_out" && m.State > 0:
			m.Deltas++
		}
		if t.Rows() < narrow || t.Cols() < narrow {
			continue
		}
		x := matrixOf(found[1], t)
		key := fmt.Sprint(x)
		if j, ok := at[key]; ok {
			m.Matrices[j].Count++
			continue
		}
		at[key] = len(m.Matrices)
		m.Matrices = append(m.Matrices, x)
	}
	return nil
}

// stored tells how the device stores what a file stores as t. What it does not hold
// exactly stays on the CPU.
func stored(t gguf.Type) (s storage, held bool) {
	switch t {
	case gguf.TQ1_0, gguf.TQ2_0, gguf.I2_S, gguf.STQ1_0:
		return ternary, true
	case gguf.Q1_0:
		return oneBit, true
	case gguf.Q2_0:
		return storage{bits: 2, group: 64}, true
	case gguf.PQ2_0, gguf.PTQ1_0:
		return storage{bits: 2, group: 128}, true
	case gguf.Q4_0, gguf.Q1_0_G32:
		return q4, true
	case gguf.IQ4_NL, gguf.IQ4_XS, gguf.IQ3_S, gguf.IQ3_XXS, gguf.MXFP4:
		return storage{bits: 4, group: 32, levels: true}, true
	case gguf.Q8_0, gguf.Q5_0, gguf.Q5_1:
		return storage{bits: 8, group: 32, offsets: t == gguf.Q5_1}, true
	case gguf.F16, gguf.BF16:
		return storage{bits: 16}, true
	case gguf.Q4_1, gguf.Q4_K:
		return storage{bits: 4, group: 32, offsets: true}, true
	}
	return storage{bits: t.BlockBytes() * 8 / max(1, t.BlockLen())}, false
}

// matrixOf returns the matrix of a tensor.
func matrixOf(name string, t *gguf.Tensor) soc.Matrix {
	s, held := stored(t.Type)
	x := s.matrix(name, t.Rows(), t.Cols(), 1)
	x.Host = !held
	return x
}
