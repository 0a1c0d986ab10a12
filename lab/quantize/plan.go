package quantize

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// Options say what becomes of a model's tensors.
type Options struct {
	Type FileType
	// Output and Embedding are the types of output.weight and of the token embeddings; nil:
	// the file type says.
	Output, Embedding *gguf.Type
	// Tensors precede the file type's rules; the first whose pattern a name has counts.
	Tensors []Override
	// Pure gives every matrix the base type, but for the above.
	Pure bool
	// Requantize allows to quantise again what is quantised, which adds to its error.
	Requantize bool
	Importance *Importance // nil: none
}

// Override gives tensors a type by their names.
type Override struct {
	Pattern *regexp.Regexp
	Type    gguf.Type
}

// Planned is a tensor and what becomes of it.
type Planned struct {
	*gguf.Tensor
	To      gguf.Type
	Instead bool // of a type whose blocks do not divide the rows

	importance *Importance // that has some for the tensor; nil: none
	factors    []float32   // of its matrices' weights; nil: ones
}

// Bytes returns the size that the tensor will have.
func (p *Planned) Bytes() int {
	n, _ := p.To.Size(p.Dims) // NewPlan has checked it
	return n
}

// Plan has the type of each tensor of a file.
type Plan struct {
	Metadata gguf.Metadata
	Tensors  []Planned // in the order of the file
}

// NewPlan decides the types of f's tensors. Tensors of one dimension, and tensors that are no matrices of products, stay as they
// are. Errors name the tensor: a type that is not read, or one that is quantised already. Factors beside weights of NVFP4 go into
// weights that become another type.
func NewPlan(f *gguf.File, opt Options) (*Plan, error) {
	m, err := traitsOf(f, opt)
	if err != nil {
		return nil, err
	}
	p := &Plan{Metadata: maps.Clone(f.Metadata), Tensors: make([]Planned, len(f.Tensors))}
	p.Metadata["general.file_type"] = opt.Type.Number
	p.Metadata["general.quantization_version"] = uint32(2)
	if opt.Importance != nil {
		maps.Copy(p.Metadata, opt.Importance.metadata())
	}
	order := make([]int, len(f.Tensors))
	for i := range order {
		order[i] = i
	}
	// Rules count the layers of a category in the order of llama.cpp's directory.
	slices.SortFunc(order, func(a, b int) int {
		x, y := f.Tensors[a].Name, f.Tensors[b].Name
		return cmp.Or(layerOf(x)-layerOf(y), strings.Compare(x, y))
	})
	c := chooser{opt: opt, model: m, of: map[category]int{}}
	for i := range f.Tensors {
		if categoryOf(f.Tensors[i].Name) == attentionV {
			c.values++
		}
	}
	for _, i := range order {
		t := &f.Tensors[i]
		wanted, err := c.choose(t)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if p.Tensors[i], err = opt.planned(t, wanted); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	return p, p.takeFactors(f)
}

// planned is t with the type that is wanted of it.
func (opt *Options) planned(t *gguf.Tensor, wanted gguf.Type) (Planned, error) {
	p := Planned{Tensor: t, To: t.Type}
	if wanted == t.Type {
		return p, nil
	}
	p.To = fitting(wanted, t.Cols())
	p.Instead = p.To != wanted
	if p.To == t.Type {
		return p, nil
	}
	switch _, err := p.To.Size(t.Dims); {
	case err != nil:
		return p, err
	case !t.Type.Supported():
		return p, fmt.Errorf("%w: storage type %v is not read", gguf.ErrUnsupported, t.Type)
	case isQuantized(t.Type) && isQuantized(p.To) && !opt.Requantize && !(holdsTrits(t.Type) && holdsTrits(p.To)):
		return p, fmt.Errorf("%w: it is %v, and %v would add to its error; --allow-requantize permits that", ErrQuantized, t.Type, p.To)
	}
	if m := opt.Importance; m != nil {
		weighed, err := m.has(t)
		if err != nil {
			return p, err
		}
		if weighed && encoders[p.To].weighted != nil {
			p.importance = m
		}
	}
	return p, nil
}

// ErrQuantized says that a tensor is quantised already.
var ErrQuantized = errors.New("quantised already")

func isQuantized(t gguf.Type) bool { return t.BlockLen() > 1 }

// holdsTrits reports whether a type is made for ternary weights.
func holdsTrits(t gguf.Type) bool {
	switch t {
	case gguf.TQ1_0, gguf.TQ2_0, gguf.I2_S, gguf.Q2_0, gguf.PQ2_0, gguf.PTQ1_0, gguf.STQ1_0:
		return true
	}
	return false
}

// traitsOf reads what rules ask of a model.
func traitsOf(f *gguf.File, opt Options) (*traits, error) {
	m := &traits{tied: f.Tensor("output.weight") == nil, weighed: opt.Importance != nil}
	m.arch, _ = f.Metadata.String("general.architecture")
	for _, n := range []struct {
		key string
		to  *int
	}{
		{"block_count", &m.layers}, {"attention.head_count", &m.heads},
		{"attention.head_count_kv", &m.headsKV}, {"expert_count", &m.experts},
	} {
		key := m.arch + "." + n.key
		v, ok := f.Metadata.Int(key)
		if list, isList := f.Metadata.Ints(key); isList && len(list) > 0 {
			v, ok = list[0], true // the first layer's
		}
		if ok && (v < 0 || v > 1<<20) {
			return nil, fmt.Errorf("key %q: %w: %d", key, gguf.ErrFormat, v)
		}
		*n.to = v
	}
	if _, ok := f.Metadata[m.arch+".attention.head_count_kv"]; !ok {
		m.headsKV = m.heads
	}
	return m, nil
}

// layerOf returns the number in blk.N., -1 for tensors of no layer.
func layerOf(name string) int {
	number, _, ok := strings.Cut(strings.TrimPrefix(name, "blk."), ".")
	n, err := strconv.ParseUint(number, 10, 20)
	if !ok || err != nil || !strings.HasPrefix(name, "blk.") {
		return -1
	}
	return int(n)
}

// chooser applies options and rules to one tensor after the other.
type chooser struct {
	opt    Options
	model  *traits
	values int              // tensors of attentionV
	of     map[category]int // tensors of each category that rules were asked for
}

// choose returns the type that t shall have, its own if it is none that may be quantised.
func (c *chooser) choose(t *gguf.Tensor) (gguf.Type, error) {
	if !isMatrix(t) {
		return t.Type, nil
	}
	of := categoryOf(t.Name)
	named, byName := c.named(t.Name)
	switch {
	case c.opt.Embedding != nil && of == tokenEmbedding && !(byName && t.Name != "token_embd.weight"):
		return *c.opt.Embedding, nil
	case c.opt.Output != nil && of == output:
		return *c.opt.Output, nil
	case byName:
		return named, nil
	case c.opt.Pure || !isQuantized(c.opt.Type.Base):
		return c.opt.Type.Base, nil
	case of == output || of == tokenEmbedding && c.model.tied:
		return c.outputType(t), nil
	case c.opt.Type.experts:
		if len(t.Dims) > 2 && t.Dims[2] > 1 {
			return gguf.MXFP4, nil
		}
		return gguf.Q8_0, nil
	case of == tokenEmbedding && c.opt.Type.Embedding != 0:
		return c.opt.Type.Embedding, nil
	}
	return c.ruled(t, of)
}

func (c *chooser) named(name string) (gguf.Type, bool) {
	for _, o := range c.opt.Tensors {
		if o.Pattern.MatchString(name) {
			return o.Type, true
		}
	}
	return 0, false
}

// outputType returns the type of the matrix of logits, each row of which is a token's.
func (c *chooser) outputType(t *gguf.Tensor) gguf.Type {
	base := c.opt.Type.Base
	switch {
	case c.opt.Output != nil:
		return *c.opt.Output
	case c.opt.Type.experts, base == gguf.Q8_0, t.Cols()%base.BlockLen() != 0:
		return gguf.Q8_0
	}
	return gguf.Q6_K
}

// ruled applies the rules.
func (c *chooser) ruled(t *gguf.Tensor, of category) (gguf.Type, error) {
	i, n := c.of[of], c.values
	c.of[of]++
	if of == ffnDown {
		n = c.model.layers
		if c.model.experts > 1 { // a layer has several
			if i = layerOf(t.Name); i < 0 || i >= n {
				return 0, fmt.Errorf("%w: it is of none of the %d layers", gguf.ErrFormat, n)
			}
		}
	}
	for _, rules := range [][]rule{common, c.opt.Type.rules} {
		for _, r := range rules {
			if r.of == of && r.in(i, n) && r.when(c.model) {
				return r.to, nil
			}
		}
	}
	return c.opt.Type.Base, nil
}
