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
var wholeNames = map[string]string{
	"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight", "norm.bias": "output_norm.bias",
	"lm_head.weight": "output.weight", "lm_head.bias": "output.bias",
	"embedding_norm.weight": "token_embd_norm.weight", "final_layernorm.weight": "output_norm.weight", "final_layernorm.bias": "output_norm.bias",
	"word_embeddings.weight": "token_embd.weight", "tok_embeddings.weight": "token_embd.weight", "output.weight": "output.weight",
	"embed_tokens_per_layer.weight": "per_layer_token_embd.weight", "per_layer_model_projection.weight": "per_layer_model_proj.weight",
	"per_layer_projection_norm.weight":  "per_layer_proj_norm.weight",
	"embeddings.word_embeddings.weight": "token_embd.weight", "embeddings.tok_embeddings.weight": "token_embd.weight",
	"embeddings.position_embeddings.weight": "position_embd.weight", "embeddings.token_type_embeddings.weight": "token_types.weight",
	"embeddings.LayerNorm.weight": "token_embd_norm.weight", "embeddings.LayerNorm.bias": "token_embd_norm.bias", "embeddings.norm.weight": "token_embd_norm.weight",
	"emb_ln.weight": "token_embd_norm.weight", "emb_ln.bias": "token_embd_norm.bias", "final_norm.weight": "output_norm.weight",
	"embeddings.weight": "token_embd.weight", "norm_f.weight": "output_norm.weight",
}

// prefixes begin names of tensors, the longest first: of models that see pictures, of models with a head, of models
// without.
var prefixes = []string{"model.language_model.", "language_model.model.", "language_model.", "backbone.", "roberta.", "bert.", "model.", ""}

// encoderLayers replaces the encoders' names of layers.
var encoderLayers = strings.NewReplacer("encoder.layers.", "layers.", "encoder.layer.", "layers.", ".gamma", ".weight", ".beta", ".bias")

// passedOver are the beginnings and ends of names of tensors that are not the language
// model's, or that repeat what config.json says.
var (
	otherModels = []string{
		"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector.", "model.visual.", "model.audio_tower.",
		"model.embed_vision.", "model.embed_audio.", "model.vision_adapter.", "model.vision_projection.", "mtp.",
	}
	repeated = []string{".rotary_emb.inv_freq", ".attn.masked_bias", ".attn.bias"}
)

// place is where a stored tensor goes.
type place struct {
	name   string // in GGUF's words
	expert int    // of a stack; -1: the tensor is not one of experts
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
			b.add(stacks[name])
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
		return p, head != ""
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
	if b.arch.encoder {
		name = encoderLayers.Replace(name)
	}
	if p.name = wholeNames[name]; p.name != "" {
		unused := p.name == "output.weight" && (b.config.flag("tie_word_embeddings", false) || b.md[b.arch.name+".pooling_type"] != nil)
		return p, !unused
	}
	if rest, ok := strings.CutPrefix(name, "layers."); ok {
		number, part, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(number)
		if whole := err == nil && n >= 0 && n < maxLayers && strconv.Itoa(n) == number; whole && b.unread(n, part) {
			return p, false
		} else if whole && b.placeInLayer(part, &p) {
			p.name = fmt.Sprintf("blk.%d.%s", n, p.name)
			return p, true
		}
	}
	b.fail("tensor %q: %w: it has no meaning for model_type %s", t.Name, ErrUnsupported, b.config.text("model_type", ""))
	return p, false
}

// unread tells whether nothing computes with a part of layer n: that layer predicts tokens further
// ahead, or reads keys and values of another.
func (b *builder) unread(n int, part string) bool {
	layers, _ := b.md[b.arch.name+".block_count"].(uint32)
	if ahead := b.config.count("num_nextn_predict_layers", 0, maxLayers, 0); n >= int(layers) && n < int(layers)+ahead {
		return true
	}
	shared, _ := b.md[b.arch.name+".attention.shared_kv_layers"].(uint32)
	module, _, _ := strings.Cut(strings.TrimPrefix(part, "self_attn."), ".")
	return shared > 0 && n >= int(layers)-int(shared) && (module == "k_proj" || module == "v_proj" || module == "k_norm")
}

// placeInLayer names a part of a layer; false: it is none.
func (b *builder) placeInLayer(part string, p *place) bool {
	if p.name = b.arch.names[part]; p.name != "" { // of parameters that are no weight and no bias
		return true
	}
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

// placeExpert names a part of experts: N.PART.weight of one, or gate_up_proj, up_proj and down_proj of all.
func placeExpert(of string, p *place) bool {
	switch strings.TrimSuffix(of, ".weight") {
	case "gate_up_proj":
		p.name = "ffn_gate_up_exps.weight"
		return true
	case "up_proj":
		p.name = "ffn_up_exps.weight"
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

// addTensor makes a tensor in the type that the file gives it.
func (b *builder) addTensor(s *stack) {
	t := s.parts[0]
	if s.order == nil && !b.isTrits(t) { // whose rows are not yet told apart
		s.order = b.order(s.name, s.dims)
	}
	if b.err != nil || b.pack(s) || b.err != nil {
		return
	}
	typ, ok := floatTypes[t.DType]
	if !ok {
		b.fail("tensor %q: %w: weights of %s are not read", t.Name, ErrUnsupported, t.DType)
		return
	}
	norm := strings.HasSuffix(s.name, "norm.weight")
	if b.arch.plusOne && norm && !slices.ContainsFunc(b.arch.asStored, func(end string) bool { return strings.HasSuffix(s.name, end) }) {
		s.change = func(x float32, _ int) float32 { return x + 1 }
	}
	if strings.HasSuffix(s.name, "ffn_gate_inp_shexp.weight") && len(s.dims) == 2 && s.dims[1] == 1 {
		s.dims = s.dims[:1]
	}
	s.wide = s.wide || len(s.dims) == 1 || norm || strings.Contains(s.name, "ffn_gate_inp")
	b.tensors = append(b.tensors, s.made(typ))
}

// order returns which stored row is row r of queries or keys, where rotated pairs lie
// side by side in GGUF files, and half a head apart in others; nil: they are the same.
func (k *keys) order(name string, dims []int) func(int) int {
	if !k.arch.paired {
		return nil
	}
	var n int
	switch {
	case strings.Contains(name, ".attn_q."):
		n, _ = k.md.Int(k.arch.name + ".attention.head_count")
	case strings.Contains(name, ".attn_k."):
		n = k.kvHeads()
	default:
		return nil
	}
	total := dims[len(dims)-1]
	if total%(2*n) != 0 {
		k.fail("tensor %s: %d rows are no pairs of %d heads", name, total, n)
		return nil
	}
	width := total / n
	rotated := width
	if dims, _ := k.md.Int(k.arch.name + ".rope.dimension_count"); dims > 0 && dims < width { // the others stay where they are
		rotated = dims
	}
	return func(r int) int {
		if at := r % width; at < rotated {
			return r - at + at%2*(rotated/2) + at/2
		}
		return r
	}
}

// kvHeads returns how many KV heads a layer with attention has.
func (k *keys) kvHeads() int {
	const name = ".attention.head_count_kv"
	if list, ok := k.md.Ints(k.arch.name + name); ok { // 0 where there is no attention
		return slices.Max(append(list, 1))
	}
	n, _ := k.md.Int(k.arch.name + name)
	return n
}
