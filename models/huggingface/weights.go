package huggingface

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// wholeNames are the tensors outside of layers.
var wholeNames = map[string]string{"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight", "lm_head.weight": "output.weight", "lm_head.bias": "output.bias"}

// prefixes are what names of tensors begin with, the longest first: of models that see
// pictures, of models with a head, of models without.
var prefixes = []string{"model.language_model.", "language_model.model.", "language_model.", "model.", ""}

// passedOver are the beginnings and ends of names of tensors that are not the language
// model's, or that repeat what config.json says.
var (
	otherModels = []string{"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."}
	repeated    = []string{".rotary_emb.inv_freq", ".attn.masked_bias", ".attn.bias"}
)

// place is where a stored tensor goes.
type place struct {
	name   string // in GGUF's words
	expert int    // of a stack; -1: the tensor is not one of experts
	halves bool   // it is gate and up together, and name is that of gate
}

// allTensors makes the tensors of all that is stored.
func (b *builder) allTensors() {
	stacks := map[string]*stack{}
	experts := map[string]map[int]*safetensors.Tensor{}
	for i := range b.weights.Tensors {
		t := &b.weights.Tensors[i]
		p, ok := b.place(t)
		switch {
		case b.err != nil:
			return
		case !ok:
		case p.expert >= 0:
			if experts[p.name] == nil {
				experts[p.name] = map[int]*safetensors.Tensor{}
			}
			experts[p.name][p.expert] = t
		case p.halves:
			b.halves(t, p.name)
		case stacks[p.name] != nil:
			b.fail("tensor %q: %w: %q is the same one", t.Name, safetensors.ErrFormat, stacks[p.name].parts[0].Name)
		default:
			stacks[p.name] = &stack{name: p.name, parts: []*safetensors.Tensor{t}, dims: b.dims(t)}
		}
	}
	for name, of := range experts {
		stacks[name] = b.experts(name, of)
	}
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		if b.err == nil {
			b.addTensor(stacks[name])
		}
	}
	slices.SortStableFunc(b.tensors, func(x, y gguf.Tensor) int { return cmp.Compare(layerOf(x.Name), layerOf(y.Name)) })
}

// layerOf orders tensors: the embedding, layers, what follows them.
func layerOf(name string) int {
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		number, _, _ := strings.Cut(rest, ".")
		n, _ := strconv.Atoi(number) // of our own making
		return n
	}
	if strings.HasPrefix(name, "token_embd") || strings.HasPrefix(name, "rope_") {
		return -1
	}
	return maxLayers
}

// fastestFirst returns a shape as GGUF has it.
func fastestFirst(shape []int) []int {
	dims := slices.Clone(shape)
	slices.Reverse(dims)
	if len(dims) == 0 {
		return []int{1}
	}
	return dims
}

// place names a stored tensor; false: it is not wanted.
func (b *builder) place(t *safetensors.Tensor) (p place, wanted bool) {
	p.expert = -1
	begins := func(s string) bool { return strings.HasPrefix(t.Name, s) }
	ends := func(s string) bool { return strings.HasSuffix(t.Name, s) }
	if b.isBeside(t.Name) || slices.ContainsFunc(otherModels, begins) || slices.ContainsFunc(repeated, ends) {
		return p, false
	}
	if head, ok := b.head(t.Name); ok {
		p.name = head
		return p, true
	}
	name := t.Name
	if b.isCodes(t) {
		name = strings.TrimSuffix(name, b.quant.codes) + ".weight"
	}
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			name = rest
			break
		}
	}
	if p.name = wholeNames[name]; p.name != "" {
		unused := p.name == "output.weight" && (b.config.flag("tie_word_embeddings", false) || b.md[b.arch.name+".pooling_type"] != nil)
		return p, !unused
	}
	if rest, ok := strings.CutPrefix(name, "layers."); ok {
		number, part, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < maxLayers && strconv.Itoa(n) == number && b.placeInLayer(part, &p) {
			p.name = fmt.Sprintf("blk.%d.%s", n, p.name)
			return p, true
		}
	}
	b.fail("tensor %q: %w: it has no meaning for model_type %s", t.Name, ErrUnsupported, b.config.text("model_type", ""))
	return p, false
}

// placeInLayer names a part of a layer; false: it is none.
func (b *builder) placeInLayer(part string, p *place) bool {
	dot := strings.LastIndexByte(part, '.')
	if dot < 0 {
		return false
	}
	stem, kind := part[:dot], part[dot+1:]
	if _, of, ok := strings.Cut(part, ".experts."); ok && b.arch.mixture != nil {
		return placeExpert(of, p)
	}
	if kind != "weight" && kind != "bias" {
		return false
	}
	if p.name = b.arch.names[stem]; p.name == "" {
		p.name = layerNames[stem]
	}
	p.name += "." + kind
	return p.name != "."+kind
}

// placeExpert names a part of experts: N.PART.weight of one, or gate_up_proj and down_proj of all.
func placeExpert(of string, p *place) bool {
	switch of {
	case "gate_up_proj":
		p.name, p.halves = "ffn_gate_exps.weight", true
		return true
	case "down_proj":
		p.name = "ffn_down_exps.weight"
		return true
	}
	number, part, _ := strings.Cut(of, ".")
	part, ok := strings.CutSuffix(part, ".weight")
	n, err := strconv.Atoi(number)
	p.name, p.expert = expertNames[part]+".weight", n
	return ok && err == nil && n >= 0 && n < maxLayers && expertNames[part] != ""
}

// experts stacks the tensors of a layer's experts.
func (b *builder) experts(name string, of map[int]*safetensors.Tensor) *stack {
	n, _ := b.md[b.arch.name+".expert_count"].(uint32)
	s := &stack{name: name}
	for e := range int(n) {
		t := of[e]
		switch {
		case t == nil:
			b.fail("tensor %s: expert %d of %d is missing", name, e, n)
			return s
		case e > 0 && (!slices.Equal(t.Shape, s.parts[0].Shape) || t.DType != s.parts[0].DType):
			b.fail("tensor %q: %w: another shape or type than that of the first expert", t.Name, safetensors.ErrFormat)
			return s
		}
		s.parts = append(s.parts, t)
	}
	if len(of) != len(s.parts) {
		b.fail("tensor %s: %d experts are there, %s says %d", name, len(of), fileConfig, n)
		return s
	}
	s.dims = append(b.dims(s.parts[0]), len(s.parts))
	return s
}

// halves takes gate and up of all experts apart, which are one tensor: [experts][gate, up][Hidden].
func (b *builder) halves(t *safetensors.Tensor, gate string) {
	if len(t.Shape) != 3 || t.Shape[1]%2 != 0 {
		b.fail("tensor %q: %w: shape %v, want three dimensions with gate and up in the second", t.Name, safetensors.ErrFormat, t.Shape)
		return
	}
	half := t.Shape[1] / 2
	for i, name := range []string{gate, strings.Replace(gate, "gate", "up", 1)} {
		s := &stack{name: name, parts: []*safetensors.Tensor{t}, dims: []int{t.Shape[2], half, t.Shape[0]}}
		s.order = func(r int) int { return r/half*2*half + i*half + r%half }
		b.addTensor(s)
	}
}

// addTensor makes a tensor in the type that the file gives it.
func (b *builder) addTensor(s *stack) {
	t := s.parts[0]
	if b.pack(s) || b.err != nil {
		return
	}
	typ, ok := floatTypes[t.DType]
	if !ok {
		b.fail("tensor %q: %w: weights of %s are not read", t.Name, ErrUnsupported, t.DType)
		return
	}
	if s.order == nil {
		s.order = b.order(s.name, s.dims)
	}
	norm := strings.HasSuffix(s.name, "norm.weight")
	if b.arch.plusOne && norm {
		s.plus = 1
	}
	if len(s.dims) == 1 || norm || strings.Contains(s.name, "ffn_gate_inp") {
		if strings.HasSuffix(s.name, "ffn_gate_inp_shexp.weight") && len(s.dims) == 2 && s.dims[1] == 1 {
			s.dims = s.dims[:1]
		}
		b.tensors = append(b.tensors, s.wide(typ))
		return
	}
	b.tensors = append(b.tensors, s.asStored(typ))
}

// order returns which stored row is row r of queries or keys, where rotated pairs lie
// side by side in GGUF files, and half a head apart in others; nil: they are the same.
func (b *builder) order(name string, dims []int) func(int) int {
	if !b.arch.paired {
		return nil
	}
	heads := "attention.head_count"
	switch {
	case strings.Contains(name, ".attn_q."):
	case strings.Contains(name, ".attn_k."):
		heads += "_kv"
	default:
		return nil
	}
	n := int(b.md[b.arch.name+"."+heads].(uint32))
	total := dims[len(dims)-1]
	if total%(2*n) != 0 {
		b.fail("tensor %s: %d rows are no pairs of %d heads", name, total, n)
		return nil
	}
	width := total / n
	return func(r int) int { return r/width*width + r%2*(width/2) + r%width/2 }
}
