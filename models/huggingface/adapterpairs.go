package huggingface

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// pair is the two matrices that change one that a model's file has in another form.
type pair struct{ a, b *safetensors.Tensor }

// The ends of what pairs change: all experts of a layer, whose parameters PEFT changes one within the
// other (target_parameters), and keys and values of latent attention.
const (
	expertsName   = ".experts"
	innerName     = ".base_layer"
	keyValuesName = ".self_attn.kv_b_proj"
)

// isPair tells whether the matrices of a name are read together.
func (b *adapterBuilder) isPair(stem string) bool {
	return b.arch.mixture != nil && strings.HasSuffix(moduleOf(stem), expertsName) || strings.HasSuffix(stem, keyValuesName) && b.arch.name == "deepseek2"
}

// moduleOf returns the module that a name lies in.
func moduleOf(stem string) string {
	for strings.HasSuffix(stem, innerName) {
		stem = strings.TrimSuffix(stem, innerName)
	}
	return stem
}

// pair notes one of two matrices.
func (b *adapterBuilder) pair(stem string, t *safetensors.Tensor, up bool) {
	if b.pairs[stem] == nil {
		b.pairs[stem] = &pair{}
	}
	if p := b.pairs[stem]; up {
		p.b = t
	} else {
		p.a = t
	}
}

// allPairs makes the tensors of pairs.
func (b *adapterBuilder) allPairs() {
	for _, stem := range slices.Sorted(maps.Keys(b.pairs)) {
		p := b.pairs[stem]
		switch {
		case b.err != nil:
			return
		case p.a == nil:
			b.fail("tensor base_model.model.%s.lora_A.weight is missing", stem)
		case p.b == nil:
			b.fail("tensor base_model.model.%s.lora_B.weight is missing", stem)
		case p.a.Shape[0] != p.b.Shape[1] || p.a.DType != p.b.DType:
			b.fail("tensor %q is %s of shape %v, lora_B %s of shape %v: they have no rank in common", p.a.Name, p.a.DType, p.a.Shape, p.b.DType, p.b.Shape)
		case strings.HasSuffix(stem, keyValuesName):
			b.keyValues(strings.TrimSuffix(stem, keyValuesName), p)
		default:
			b.allExperts(moduleOf(stem), p)
		}
	}
}

// keyValues makes what adapts Wkey and Wvalue of each head, of which kv_b_proj has [Heads][plain, value]
// rows. The model's attn_k_b is Wkey turned, so that the two matrices that add to it change places.
func (b *adapterBuilder) keyValues(layer string, p *pair) {
	place, _ := b.place(&safetensors.Tensor{Name: layer + ".self_attn.o_proj.weight"})
	keys, values := strings.Replace(place.name, "attn_output", "attn_k_b", 1), strings.Replace(place.name, "attn_output", "attn_v_b", 1)
	k, v := b.model.Tensor(keys), b.model.Tensor(values)
	if b.err != nil || k == nil || v == nil || len(k.Dims) != 3 || len(v.Dims) != 3 {
		b.fail("tensor %q: the model has no %s and %s", p.a.Name, keys, values)
		return
	}
	plain, value, heads, latent, rank := k.Dims[0], v.Dims[1], k.Dims[2], v.Dims[0], p.a.Shape[0]
	each := plain + value
	if p.a.Shape[1] != latent || p.b.Shape[0] != heads*each {
		b.fail("tensor %q has shape %v, lora_B %v, want [%d %d] and [%d %d]", p.a.Name, p.a.Shape, p.b.Shape, rank, latent, heads*each, rank)
		return
	}
	b.turned(keys+".lora_a", []int{plain, rank, heads}, p.b, [3]int{heads, each, rank}, [3]int{0, 2, 1}, func(r int) int { return r * each })
	b.turned(keys+".lora_b", []int{rank, latent}, p.a, [3]int{1, rank, latent}, [3]int{0, 2, 1}, func(r int) int { return r * rank })
	for _, tensor := range []string{keys, values} {
		b.alphaOf(tensor, layer+keyValuesName)
	}
	down := stack{name: values + ".lora_a", parts: []*safetensors.Tensor{p.a}, dims: []int{latent, rank}}
	b.tensors = append(b.tensors, down.made(floatTypes[p.a.DType]))
	b.turned(values+".lora_b", []int{rank, value, heads}, p.b, [3]int{heads, each, rank}, [3]int{0, 1, 2}, func(r int) int { return (r/value*each + plain + r%value) * rank })
}

// expertPair changes a parameter of all experts of a layer.
type expertPair struct {
	*pair
	experts, rank int
	swapped       bool   // what A should be stands in B
	parameter     string // that it changes
}

// allExperts makes the pair of each expert. A has the rows of one expert after another's, B its columns among
// the others'. PEFT before 0.19.1 took a parameter's rows for its columns.
func (b *adapterBuilder) allExperts(experts string, p *pair) {
	place, _ := b.place(&safetensors.Tensor{Name: experts + ".down_proj"})
	n, _ := b.model.Metadata.Int(b.arch.name + ".expert_count")
	t := b.model.Tensor(place.name)
	if t == nil {
		t = b.model.Tensor(alone(place.name, 0))
	}
	if b.err != nil || t == nil || len(t.Dims) < 2 || n < 1 {
		b.fail("tensor %q: the model has no %s", p.a.Name, place.name)
		return
	}
	width, hidden, reads, makes, rank := t.Dims[0], t.Dims[1], p.a.Shape[1], p.b.Shape[0], p.a.Shape[0]/int(n)
	is := func(rows, cols int) (now, before bool) {
		return makes == rows && reads == cols, makes == cols && reads == rows
	}
	up, oldUp := is(2*width, hidden)
	down, oldDown := is(hidden, width)
	if !up && !oldUp && !down && !oldDown || rank*int(n) != p.a.Shape[0] || rank < 1 {
		b.fail("tensor %q has shape %v, lora_B %v: they add neither to gate and up, [%d %d], nor to down, [%d %d], of %d experts",
			p.a.Name, p.a.Shape, p.b.Shape, 2*width, hidden, hidden, width, n)
		return
	}
	if gate := strings.Replace(place.name, "down", "gate", 1); b.model.Tensor(gate) == nil && b.model.Tensor(alone(gate, 0)) == nil {
		b.fail("tensor %q: %w: experts without gates, whose matrices have one shape", p.a.Name, ErrUnsupported)
		return
	}
	e := expertPair{pair: p, experts: int(n), rank: rank, swapped: (oldUp || oldDown) && (b.old || !up && !down), parameter: experts + ".down_proj"}
	if up || oldUp {
		e.parameter = experts + ".gate_up_proj"
		b.expertPart(e, strings.Replace(place.name, "down", "gate", 1), 0, width)
		b.expertPart(e, strings.Replace(place.name, "down", "up", 1), width, width)
	} else {
		b.expertPart(e, place.name, 0, hidden)
	}
}

// expertPart adds what adapts rows [lo, lo+n) of each expert's parameter, by the name of all.
func (b *adapterBuilder) expertPart(p expertPair, name string, lo, n int) {
	typ, rank, reads, makes := floatTypes[p.a.DType], p.rank, p.a.Shape[1], p.b.Shape[0]
	ofB := [3]int{makes, rank, p.experts}
	for e := range p.experts {
		to := alone(name, e)
		b.alphaOf(to, p.parameter)
		if p.swapped {
			b.turned(to+".lora_a", []int{makes, rank}, p.b, ofB, [3]int{2, 1, 0}, func(r int) int { return (e*rank + r) * makes })
			b.turned(to+".lora_b", []int{rank, n}, p.a, [3]int{p.experts, rank, reads}, [3]int{0, 2, 1}, func(r int) int { return (e*reads + lo + r) * rank })
			continue
		}
		a := gguf.Tensor{Name: to + ".lora_a", Type: typ, Dims: []int{reads, rank}}
		b.tensors = append(b.tensors, a.At(p.a.Source, p.a.Offset+int64(e*rank)*int64(reads*typ.BlockBytes())))
		b.turned(to+".lora_b", []int{rank, n}, p.b, ofB, [3]int{2, 0, 1}, func(r int) int { return (e*makes + lo + r) * rank })
	}
}

// alone names what one expert has of a tensor of all.
func alone(name string, expert int) string {
	return strings.Replace(name, "_exps.", fmt.Sprintf(".%d.", expert), 1)
}

// before tells whether a version, such as 0.18.2.dev0, is older than another; one that is not said is.
func before(version string, than ...int) bool {
	var got [3]int
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &got[0], &got[1], &got[2]) // what is missing is 0
	return slices.Compare(got[:], than) < 0
}
