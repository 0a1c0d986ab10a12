package quantize

import (
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// FileType says what the tensors of a file become: one of types, or one whose mixture gives
// tensors that matter more to the answers more bits.
type FileType struct {
	Name   string
	Number uint32    // of general.file_type
	Base   gguf.Type // of most weights
	// Embedding is the type of a token embedding that is not the output's matrix too; 0: Base.
	Embedding gguf.Type
	rules     []rule
	experts   bool // Base is for experts alone, all else is Q8_0
}

// category is the purpose of a tensor, by its name.
type category int

const (
	other category = iota
	tokenEmbedding
	output
	attentionV // or a matrix that holds it
	attentionK
	attentionOutput
	ffnDown
)

// layers says in which layers a rule holds, of layer i of n.
type layers func(i, n int) bool

func everywhere(int, int) bool     { return true }
func firstFour(i, _ int) bool      { return i < 4 }
func firstEighth(i, n int) bool    { return i < n/8 }
func firstLastThird(i, n int) bool { return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2 }

// traits has the properties of a model and of the options that rules need.
type traits struct {
	arch                            string
	layers, heads, headsKV, experts int
	tied                            bool // the token embedding is the output's matrix
	weighed                         bool // there are importances
}

func (m *traits) always() bool       { return true }
func (m *traits) eightExperts() bool { return m.experts == 8 }
func (m *traits) sharedV() bool      { return m.headsKV > 0 && m.heads/m.headsKV >= 4 }
func (m *traits) unweighed() bool    { return !m.weighed }
func (m *traits) isWeighed() bool    { return m.weighed }

// llama70B has attention values that eight heads share: more bits cost it little.
func (m *traits) llama70B() bool {
	return m.arch == "llama" && m.layers == 80 && m.heads != m.headsKV
}

// rule gives tensors of a category another type than the base. The first that holds counts.
type rule struct {
	of   category
	in   layers
	when func(*traits) bool
	to   gguf.Type
}

// common rules come before the rules of every quantised file type (llama_tensor_get_type_impl of llama-quant.cpp, as the others).
var common = []rule{
	{attentionV, everywhere, (*traits).eightExperts, gguf.Q8_0},
	{attentionK, everywhere, (*traits).eightExperts, gguf.Q8_0},
}

var (
	expertsOutput = rule{attentionOutput, everywhere, (*traits).eightExperts, gguf.Q5_K}
	largeV        = rule{attentionV, everywhere, (*traits).llama70B, gguf.Q5_K}
	nonLinear     = []rule{
		{attentionV, everywhere, (*traits).sharedV, gguf.Q5_K},
		{ffnDown, firstEighth, (*traits).unweighed, gguf.Q5_K},
		expertsOutput,
	}
)

// fileTypes have the names and numbers of llama-quantize; MXFP4, which it has for experts
// alone, I2_S of bitnet.cpp and P types of PrismML's llama.cpp are in addition.
var fileTypes = []FileType{
	{Name: "F32", Number: 0, Base: gguf.F32},
	{Name: "F16", Number: 1, Base: gguf.F16},
	{Name: "BF16", Number: 32, Base: gguf.BF16},
	{Name: "Q8_0", Number: 7, Base: gguf.Q8_0},
	{Name: "Q6_K", Number: 18, Base: gguf.Q6_K},
	{Name: "Q5_K_M", Number: 17, Base: gguf.Q5_K, rules: []rule{
		{attentionV, firstLastThird, (*traits).always, gguf.Q6_K},
		{ffnDown, firstLastThird, (*traits).always, gguf.Q6_K},
	}},
	{Name: "Q5_K_S", Number: 16, Base: gguf.Q5_K},
	{Name: "Q4_K_M", Number: 15, Base: gguf.Q4_K, rules: []rule{
		{attentionV, firstLastThird, (*traits).always, gguf.Q6_K},
		{ffnDown, firstLastThird, (*traits).always, gguf.Q6_K},
		largeV, expertsOutput,
	}},
	{Name: "Q4_K_S", Number: 14, Base: gguf.Q4_K, rules: []rule{
		{attentionV, firstFour, (*traits).always, gguf.Q5_K},
		{ffnDown, firstEighth, (*traits).always, gguf.Q5_K},
		largeV, expertsOutput,
	}},
	{Name: "Q5_0", Number: 8, Base: gguf.Q5_0, rules: []rule{{ffnDown, firstEighth, (*traits).isWeighed, gguf.Q5_1}}},
	{Name: "Q5_1", Number: 9, Base: gguf.Q5_1},
	{Name: "Q4_0", Number: 2, Base: gguf.Q4_0, rules: []rule{{ffnDown, firstEighth, (*traits).isWeighed, gguf.Q4_1}}},
	{Name: "Q4_1", Number: 3, Base: gguf.Q4_1},
	{Name: "IQ4_NL", Number: 25, Base: gguf.IQ4_NL, rules: nonLinear},
	{Name: "IQ4_XS", Number: 30, Base: gguf.IQ4_XS, rules: nonLinear},
	{Name: "MXFP4", Number: 38, Base: gguf.MXFP4},
	{Name: "MXFP4_MOE", Number: 38, Base: gguf.MXFP4, experts: true},
	{Name: "TQ2_0", Number: 37, Base: gguf.TQ2_0, Embedding: gguf.Q4_K},
	{Name: "TQ1_0", Number: 36, Base: gguf.TQ1_0, Embedding: gguf.Q4_K},
	{Name: "I2_S", Number: 40, Base: gguf.I2_S, Embedding: gguf.Q4_K},
	{Name: "Q2_0", Number: 41, Base: gguf.Q2_0, Embedding: gguf.Q4_K},
	{Name: "PQ2_0", Number: 141, Base: gguf.PQ2_0, Embedding: gguf.Q4_K},
	{Name: "PTQ1_0", Number: 143, Base: gguf.PTQ1_0, Embedding: gguf.Q4_K},
	{Name: "STQ1_0", Number: 42, Base: gguf.STQ1_0, Embedding: gguf.Q4_K},
	{Name: "Q1_0", Number: 40, Base: gguf.Q1_0},
}

// FileTypes lists the names of file types, most bits first.
func FileTypes() []string {
	names := make([]string, len(fileTypes))
	for i := range fileTypes {
		names[i] = fileTypes[i].Name
	}
	return names
}

// aliases of names, as llama-quantize has them.
var aliases = map[string]string{"Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}

// FileTypeNamed returns the file type of that name, in upper or lower case.
func FileTypeNamed(name string) (FileType, bool) {
	name = strings.ToUpper(name)
	if full, ok := aliases[name]; ok {
		name = full
	}
	i := slices.IndexFunc(fileTypes, func(t FileType) bool { return t.Name == name })
	if i < 0 {
		return FileType{}, false
	}
	return fileTypes[i], true
}

// instead has the replacement of each type for rows that are no whole blocks of it. Without one they become F16.
var instead = map[gguf.Type]gguf.Type{
	gguf.Q6_K: gguf.Q8_0, gguf.Q5_K: gguf.Q5_1, gguf.Q4_K: gguf.Q5_0, gguf.IQ4_XS: gguf.IQ4_NL,
	gguf.TQ1_0: gguf.Q4_0, gguf.TQ2_0: gguf.Q4_0, gguf.Q2_0: gguf.Q4_0, gguf.Q1_0: gguf.Q4_0,
	// Groups of 64 keep trits as they are.
	gguf.I2_S: gguf.Q2_0, gguf.PQ2_0: gguf.Q2_0, gguf.PTQ1_0: gguf.Q2_0, gguf.STQ1_0: gguf.Q2_0,
}

// fitting returns t, or what rows of cols values become instead.
func fitting(t gguf.Type, cols int) gguf.Type {
	for cols%t.BlockLen() != 0 {
		next, ok := instead[t]
		if !ok {
			return gguf.F16
		}
		t = next
	}
	return t
}

// kept are parts of names of matrices that stay as they are: they are small, or choose among
// experts, or are no matrices of products (tensor_allows_quantization of llama-quant.cpp).
var kept = []string{
	"_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
	"ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight",
	"time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight",
	"time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight",
	"time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight", "time_mix_g2.weight",
	"time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight", "attn_rel_b.weight",
	".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd", ".patch_merger",
	"a.rvq.codebook", "mm.a.code_embd",
}

// isMatrix reports whether a tensor is one that may be quantised.
func isMatrix(t *gguf.Tensor) bool {
	dims := len(t.Dims)
	for dims > 1 && t.Dims[dims-1] == 1 {
		dims--
	}
	return dims >= 2 && strings.HasSuffix(t.Name, "weight") &&
		t.Name != "position_embd.weight" && t.Name != "token_types.weight" &&
		!slices.ContainsFunc(kept, func(part string) bool { return strings.Contains(t.Name, part) })
}

// parts are parts of the names in each category; the first that is found counts.
var parts = []struct {
	name string
	of   category
}{
	{"attn_qkv.weight", attentionV}, {"attn_kv_b.weight", attentionV}, {"attn_v.weight", attentionV},
	{"attn_k.weight", attentionK}, {"attn_q.weight", other}, {"attn_output.weight", attentionOutput},
	{"ffn_up", other}, {"ffn_gate", other}, {"ffn_down", ffnDown},
}

func categoryOf(name string) category {
	switch name {
	case "output.weight":
		return output
	case "token_embd.weight", "per_layer_token_embd.weight":
		return tokenEmbedding
	}
	for _, p := range parts {
		if strings.Contains(name, p.name) {
			return p.of
		}
	}
	return other
}
