package huggingface

import (
	"math"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// layout adds the tensors that a stored one becomes, where GGUF has it in another form. s is
// what it would be if it were taken as it is.
type layout func(b *builder, s *stack)

// add adds the tensors of s.
func (b *builder) add(s *stack) {
	if f := b.layout(s.name); f != nil {
		f(b, s)
	} else {
		b.addTensor(s)
	}
}

// layout finds the layout of a tensor; nil: it is taken as it is.
func (b *builder) layout(name string) layout {
	if f := b.arch.layouts[partOf(name)]; f != nil {
		return f
	}
	return layouts[partOf(name)]
}

// layouts has the layouts of all models.
var layouts map[string]layout

func init() { // apart, for these functions ask for layouts
	layouts = map[string]layout{
		"ffn_gate_up_exps.weight": (*builder).halves, "ffn_gate_up_shexp.weight": (*builder).halves, "ffn_gate_up.weight": (*builder).halves,
		"ssm_conv1d.weight": squeezed, "shortconv.conv.weight": squeezed,
	}
}

// sibling names another part of the layer that s is of.
func (s *stack) sibling(name string) string { return s.name[:len(s.name)-len(partOf(s.name))] + name }

// partOf returns a name without its layer's.
func partOf(name string) string {
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		_, name, _ = strings.Cut(rest, ".")
	}
	return name
}

// taken returns a tensor made of stored rows of s: order says which.
func (s *stack) taken(name string, dims []int, order func(int) int) *stack {
	return &stack{name: name, parts: s.parts, dims: dims, order: order}
}

// halves takes gate and up apart, of a layer or of all its experts, which are one tensor:
// [experts][gate, up][Hidden].
func (b *builder) halves(s *stack) {
	n := len(s.dims)
	if n < 2 || n > 3 || s.dims[1]%2 != 0 || len(s.parts) != 1 {
		b.fail("tensor %q: %w: shape %v, want gate and up in the last dimension but one", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape)
		return
	}
	half := s.dims[1] / 2
	for i, kind := range []string{"gate", "up"} {
		dims := append([]int{s.dims[0], half}, s.dims[2:]...)
		name := s.sibling(strings.Replace(partOf(s.name), "gate_up", kind, 1))
		b.addTensor(s.taken(name, dims, func(r int) int { return r/half*2*half + i*half + r%half }))
	}
}

// squeezed drops the dimension of one between the taps and the channels of a convolution.
func squeezed(b *builder, s *stack) {
	if len(s.dims) != 3 || s.dims[1] != 1 {
		b.fail("tensor %q: %w: shape %v, want [channels 1 taps]", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape)
		return
	}
	s.dims, s.wide = []int{s.dims[0], s.dims[2]}, true
	b.addTensor(s)
}

// decays makes factors of decays of their logarithms.
func decays(b *builder, s *stack) {
	s.change = func(x float32, _ int) float32 { return float32(-math.Exp(float64(x))) }
	s.wide = true
	b.addTensor(s)
}

// ofHeads makes one row a head of a vector.
func ofHeads(b *builder, s *stack) {
	if len(s.dims) == 1 {
		s.dims = []int{1, s.dims[0]}
	}
	s.wide = true
	b.addTensor(s)
}

// stateSpaceLayouts has the layouts of Mamba-2.
var stateSpaceLayouts = map[string]layout{
	"ssm_a": func(b *builder, s *stack) { s.dims = []int{1, s.dims[0]}; decays(b, s) },
	"ssm_d": ofHeads,
	"ssm_norm.weight": func(b *builder, s *stack) {
		if n, _ := b.md[b.arch.name+".ssm.group_count"].(uint32); n > 0 && s.dims[0]%int(n) == 0 {
			s.dims = []int{s.dims[0] / int(n), int(n)}
		}
		b.addTensor(s)
	},
}

// deltaShape determines the order of a gated delta net's rows.
type deltaShape struct{ keyHeads, each, keyWidth, width int } // each: value heads of a key head

func (k *keys) deltaShape() deltaShape {
	c := &k.config
	d := deltaShape{keyHeads: c.count("linear_num_key_heads", 1, maxDim, required), keyWidth: c.count("linear_key_head_dim", 1, maxDim, required), width: c.count("linear_value_head_dim", 1, maxDim, required)}
	d.each = c.count("linear_num_value_heads", 1, maxDim, required) / max(1, d.keyHeads)
	return d
}

// tiled returns a function from a place i to the stored number or row. Of total ones, the value heads' begin
// at first and are n wide each. Files have the first value head of every key head, then the second.
func (b *builder) tiled(s *stack, total, first, n int) func(int) int {
	d := b.deltaShape()
	if total != first+d.keyHeads*d.each*n {
		b.fail("tensor %q: %w: shape %v, want %d value heads of %d behind %d", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape, d.keyHeads*d.each, n, first)
	}
	if d.each == 1 {
		return nil
	}
	return func(i int) int {
		if i < first {
			return i
		}
		at := i - first
		head := at / n
		return first + (head%d.keyHeads*d.each+head/d.keyHeads)*n + at%n
	}
}

// tiledRows orders rows, or numbers, of value heads.
func tiledRows(width func(d deltaShape) (first, n int)) layout {
	return func(b *builder, s *stack) {
		first, n := width(b.deltaShape())
		s.order = b.tiled(s, s.dims[len(s.dims)-1], first, n)
		if len(s.dims) == 3 {
			squeezed(b, s)
			return
		}
		b.addTensor(s)
	}
}

func wholeHeads(d deltaShape) (first, n int) { return 0, d.width }
func oneAHead(deltaShape) (first, n int)     { return 0, 1 }
func behindKeys(d deltaShape) (first, n int) { return 2 * d.keyHeads * d.keyWidth, d.width }

// deltaLayouts has the layouts of gated delta nets whose value heads files have in another order.
var deltaLayouts = map[string]layout{
	"attn_qkv.weight": tiledRows(behindKeys), "ssm_conv1d.weight": tiledRows(behindKeys), "attn_gate.weight": tiledRows(wholeHeads),
	"ssm_alpha.weight": tiledRows(oneAHead), "ssm_beta.weight": tiledRows(oneAHead), "ssm_dt.bias": tiledRows(oneAHead),
	"ssm_a": func(b *builder, s *stack) {
		s.order = b.tiled(s, s.dims[0], 0, 1)
		decays(b, s)
	},
	"ssm_out.weight": func(b *builder, s *stack) {
		s.columns = b.tiled(s, s.dims[0], 0, b.deltaShape().width)
		b.addTensor(s)
	},
}

// groupedDeltaLayouts has the layouts of Qwen3-Next, whose matrix has all of a key head together: [query, key,
// its values, their gates].
var groupedDeltaLayouts = map[string]layout{
	"ssm_a": decays,
	"attn_qkvz.weight": func(b *builder, s *stack) {
		d := b.deltaShape()
		keys, values := d.keyHeads*d.keyWidth, d.each*d.width
		whole := 2*d.keyWidth + 2*values
		if len(s.dims) != 2 || s.dims[1] != d.keyHeads*whole {
			b.fail("tensor %q: %w: shape %v, want %d rows", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape, d.keyHeads*whole)
			return
		}
		of := func(r, width, from int) int { return r/width*whole + from + r%width }
		b.addTensor(s.taken(s.sibling("attn_qkv.weight"), []int{s.dims[0], 2*keys + d.keyHeads*values}, func(r int) int {
			switch {
			case r < keys:
				return of(r, d.keyWidth, 0)
			case r < 2*keys:
				return of(r-keys, d.keyWidth, d.keyWidth)
			}
			return of(r-2*keys, values, 2*d.keyWidth)
		}))
		b.addTensor(s.taken(s.sibling("attn_gate.weight"), []int{s.dims[0], d.keyHeads * values}, func(r int) int { return of(r, values, 2*d.keyWidth+values) }))
	},
}

// latentLayouts has the layouts of multi-head latent attention: keys and values of each head are matrices of
// their own, and the keys' is turned.
var latentLayouts = map[string]layout{
	"attn_kv_b.weight": func(b *builder, s *stack) {
		heads := int(b.md[b.arch.name+".attention.head_count"].(uint32))
		plain, value := b.config.count("qk_nope_head_dim", 1, maxDim, required), b.config.count("v_head_dim", 1, maxDim, required)
		if each := plain + value; b.err == nil && (len(s.dims) != 2 || s.dims[1] != heads*each) {
			b.fail("tensor %q: %w: shape %v, want %d rows", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape, heads*each)
		}
		if b.err != nil {
			return
		}
		each, rank := plain+value, s.dims[0]
		b.addTurned(s, s.sibling("attn_k_b.weight"), []int{plain, rank, heads}, [3]int{heads, each, rank}, func(r int) int { return r * each })
		b.addTensor(s.taken(s.sibling("attn_v_b.weight"), []int{rank, value, heads}, func(r int) int { return r/value*each + plain + r%value }))
	},
}

// addTurned adds a tensor whose row r begins at number from(r) of what s holds, [n][rows][cols], with rows
// and columns exchanged.
func (b *builder) addTurned(s *stack, name string, dims []int, shape [3]int, from func(r int) int) {
	t := b.widened(s.parts[0])
	if t == nil {
		return
	}
	if _, ok := floatTypes[t.DType]; !ok || len(s.parts) != 1 || shape[0]*shape[1]*shape[2] != t.Len() {
		b.fail("tensor %q: %w: weights of %s and shape %v are not read where they are to be turned", t.Name, ErrUnsupported, t.DType, t.Shape)
		return
	}
	b.turned(name, dims, t, shape, [3]int{0, 2, 1}, from)
}

// turned adds a tensor whose row r is what t, of floats and of that shape, has with its dimensions in another order
// from number from(r) on.
func (b *builder) turned(name string, dims []int, t *safetensors.Tensor, shape, order [3]int, from func(r int) int) {
	typ := floatTypes[t.DType]
	out := gguf.Tensor{Name: name, Type: typ, Dims: dims}
	m := &rows{name: name, n: out.Rows(), size: out.Cols() * typ.BlockBytes()}
	turn := b.turn
	m.row = func(dst, _ []byte, r int) error { return turn.read(dst, t, shape, order, from(r)*typ.BlockBytes()) }
	b.tensors = append(b.tensors, out.At(m.source(), 0))
}

// alternating has the layouts of gpt-oss: experts are [in][out], and every other output is a gate.
var alternating = map[string]layout{
	"ffn_gate_up_exps.weight": func(b *builder, s *stack) {
		if b.isCodes(s.parts[0]) && len(s.dims) == 3 { // of which every other row is a gate
			for i, kind := range []string{"gate", "up"} {
				b.addTensor(s.taken(s.sibling("ffn_"+kind+"_exps.weight"), []int{s.dims[0], s.dims[1] / 2, s.dims[2]}, func(r int) int { return 2*r + i }))
			}
			return
		}
		if len(s.dims) != 3 || s.dims[0]%2 != 0 {
			b.fail("tensor %q: %w: shape %v, want three dimensions, gates and ups in the last", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape)
			return
		}
		outs, in, n := s.dims[0], s.dims[1], s.dims[2]
		for i, kind := range []string{"gate", "up"} {
			b.addTurned(s, s.sibling("ffn_"+kind+"_exps.weight"), []int{in, outs / 2, n}, [3]int{n, in, outs}, func(r int) int { return (2*r + i) * in })
		}
	},
	"ffn_down_exps.weight": func(b *builder, s *stack) {
		if b.isCodes(s.parts[0]) {
			b.addTensor(s)
			return
		}
		if len(s.dims) != 3 {
			b.fail("tensor %q: %w: shape %v, want three dimensions", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape)
			return
		}
		outs, in, n := s.dims[0], s.dims[1], s.dims[2]
		b.addTurned(s, s.name, []int{in, outs, n}, [3]int{n, in, outs}, func(r int) int { return r * in })
	},
	"ffn_gate_up_exps.bias": func(b *builder, s *stack) {
		for i, kind := range []string{"gate", "up"} {
			half := s.taken(s.sibling("ffn_"+kind+"_exps.bias"), []int{s.dims[0] / 2, s.dims[len(s.dims)-1]}, nil)
			half.columns, half.wide = func(c int) int { return 2*c + i }, true
			b.addTensor(half)
		}
	},
	"ffn_down_exps.bias": func(b *builder, s *stack) { s.wide = true; b.addTensor(s) },
}

// times multiplies a tensor by a factor, or row r by that of the first of bounds that r is below.
func times(factors func(k *keys) (factors []float64, bounds []int)) layout {
	return func(b *builder, s *stack) {
		factors, bounds := factors(&b.keys)
		one := true
		for _, x := range factors {
			one = one && x == 1
		}
		if !one && b.err == nil {
			s.change = func(x float32, r int) float32 {
				i := 0
				for i < len(bounds) && r >= bounds[i] {
					i++
				}
				return x * float32(factors[min(i, len(factors)-1)])
			}
		}
		b.addTensor(s)
	}
}

// factor is times with numbers of config.json.
func factor(names ...string) layout {
	return times(func(k *keys) ([]float64, []int) {
		x := 1.0
		for _, name := range names {
			x *= k.config.number(name, 1)
		}
		return []float64{x}, nil
	})
}
