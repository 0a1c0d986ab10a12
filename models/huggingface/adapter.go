package huggingface

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// The files of a directory that PEFT has saved.
const (
	fileAdapter    = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// KeyRootRank is a key of adapters that is true where alpha is divided by the root of the rank
// (Kalajdzievski, "A Rank Stabilization Scaling Factor for Fine-Tuning with LoRA", 2023).
const KeyRootRank = "lutra.lora.root_rank"

// KeyAlphaOf and the name of one of the model's tensors are a key of the alpha that stands there in
// place of the adapter's.
const KeyAlphaOf = "lutra.lora.alpha."

// adapterKeys are the keys of adapter_config.json that do not change the computation, or that openAdapter
// reads. All others must be null, false, empty or zero.
var adapterKeys = []string{
	"peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "bias", "init_lora_weights", "task_type", "base_model_name_or_path", "revision", "target_modules", "target_parameters", "exclude_modules",
	"layers_to_transform", "layers_pattern", "inference_mode", "lora_dropout", "peft_version", "auto_mapping", "megatron_core", "eva_config", "loftq_config",
	"qalora_group_size", "runtime_config", "ensure_weight_tying", "lora_ga_config",
}

// plainStarts are values of init_lora_weights that leave the model's own weights as they are.
var plainStarts = []string{"gaussian", "eva", "orthogonal"}

// IsAdapter tells whether a path is a directory that OpenAdapter may read.
func IsAdapter(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, fileAdapter))
	return err == nil && info.Mode().IsRegular()
}

// OpenAdapter opens the LoRA that PEFT has saved in a directory, as the GGUF file that llama.cpp
// makes of it for a model. What experts have are tensors of one each, blk.0.ffn_up.3.weight.lora_a, so
// that ranks may differ and some may have nothing. Its weights stay in their file, which is open until
// the File is closed.
func OpenAdapter(dir string, model *gguf.File) (*gguf.File, error) {
	b := &adapterBuilder{builder: newBuilder(dir), model: model, pairs: map[string]*pair{}}
	f, err := b.adapter()
	if err != nil {
		for _, s := range b.files {
			err = errors.Join(err, s.Close())
		}
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	return f, nil
}

// adapterBuilder makes the file of an adapter.
type adapterBuilder struct {
	*builder
	model *gguf.File
	pairs map[string]*pair // by the name of what they change, less lora_A.weight: those that are read together
	old   bool             // PEFT before 0.19.1 has saved it

	patterns []alphaPattern // the first that fits counts
}

func (b *adapterBuilder) adapter() (*gguf.File, error) {
	config := b.read(fileAdapter, true)
	b.adapterConfig(&config)
	b.ofModel(b.model.Metadata)
	if b.err != nil {
		return nil, b.err
	}
	if b.weights, b.err = safetensors.OpenFile(b.dir, adapterWeights); b.err != nil {
		return nil, b.err
	}
	b.files = append(b.files, b.weights.Files...)
	for i := range b.weights.Tensors {
		b.adapterTensor(&b.weights.Tensors[i])
	}
	b.allPairs()
	if b.err != nil {
		return nil, b.err
	}
	slices.SortFunc(b.tensors, func(x, y gguf.Tensor) int { return strings.Compare(x.Name, y.Name) })
	return gguf.Assemble(b.md, b.tensors, b.files)
}

// adapterConfig reads adapter_config.json, of which it refuses by name what is not supported.
func (b *adapterBuilder) adapterConfig(c *values) {
	if b.err != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.m)) {
		if !slices.Contains(adapterKeys, key) && asks(c.m[key]) {
			c.fail(key, "is %s: %w", brief(c.m[key]), ErrUnsupported)
		}
	}
	if kind := c.text("peft_type", ""); kind != "LORA" {
		c.fail("peft_type", "is %.64q: %w: only LORA is", kind, ErrUnsupported)
	}
	if bias := c.text("bias", "none"); bias != "none" {
		c.fail("bias", "is %.64q: %w: only none is", bias, ErrUnsupported)
	}
	if start, ok := c.m["init_lora_weights"].(string); ok && !slices.Contains(plainStarts, start) {
		c.fail("init_lora_weights", "is %.64q: %w: it changes the model's own weights", start, ErrUnsupported)
	}
	c.count("r", 1, maxDim, required)
	if !c.has("lora_alpha") {
		c.fail("lora_alpha", "is missing")
	}
	b.old = before(c.text("peft_version", ""), 0, 19, 1)
	alpha := c.number("lora_alpha", 0)
	if alpha == 0 {
		c.fail("lora_alpha", "is 0: %w", ErrUnsupported)
	}
	b.alphaPatterns(c.within("alpha_pattern"))
	maps.Copy(b.md, gguf.Metadata{"general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": float32(alpha), KeyRootRank: c.flag("use_rslora", false)})
}

// asks tells whether a value of JSON asks for anything.
func asks(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	n, ok := whole(v)
	return !ok || n != 0
}

// ofModel takes from a model's metadata what names of tensors and the order of rows go by.
func (b *adapterBuilder) ofModel(model gguf.Metadata) {
	name, _ := model.String("general.architecture")
	b.md["general.architecture"] = name
	for _, is := range []func(a architecture) bool{
		func(a architecture) bool { return a.name == name },
		func(a architecture) bool { return b.arch.name == "" && a.is(name) }, // where no model_type has the name alone
	} {
		for _, kind := range slices.Sorted(maps.Keys(architectures)) { // tensors of one name have the same order
			if a := architectures[kind]; is(a) && b.arch.mixture == nil { // the last, or that with experts
				b.arch = a.as(name)
			}
		}
	}
	if b.arch.name == "" {
		b.fail("%w: adapters of models of architecture %.64q are read from GGUF files alone; convert_lora_to_gguf.py of llama.cpp makes them", ErrUnsupported, name)
		return
	}
	heads, _ := model.Int(name + ".attention.head_count")
	kv, ok := model.Int(name + ".attention.head_count_kv")
	if !ok {
		kv = heads
	}
	if b.arch.paired && (heads < 1 || kv < 1 || heads > maxDim || kv > maxDim) {
		b.fail("%w: the model has layers of unlike heads", ErrUnsupported)
		return
	}
	b.md[name+".attention.head_count"], b.md[name+".attention.head_count_kv"] = uint32(heads), uint32(kv)
}

// adapterTensor adds one of the two matrices that change one of the model's:
// base_model.model.NAME.lora_A.weight or lora_B.weight.
func (b *adapterBuilder) adapterTensor(t *safetensors.Tensor) {
	if b.err != nil {
		return
	}
	name, found := strings.CutPrefix(t.Name, "base_model.model.")
	stem, down := strings.CutSuffix(name, ".lora_A.weight")
	up := false
	if !down {
		stem, up = strings.CutSuffix(name, ".lora_B.weight")
	}
	if !found || !down && !up || len(t.Shape) != 2 {
		b.fail("tensor %q: %w: want base_model.model.NAME.lora_A.weight or lora_B.weight, a matrix", t.Name, ErrUnsupported)
		return
	}
	typ, float := floatTypes[t.DType]
	if !float {
		b.fail("tensor %q: %w: weights of %s are not read", t.Name, ErrUnsupported, t.DType)
		return
	}
	if b.isPair(stem) {
		b.pair(stem, t, up)
		return
	}
	p, wanted := b.place(&safetensors.Tensor{Name: stem + ".weight"})
	switch {
	case b.err != nil:
		return
	case !wanted || b.layout(p.name) != nil:
		b.fail("tensor %q: %w: adapters of it are not read", t.Name, ErrUnsupported)
		return
	case p.expert >= 0:
		p.name = alone(p.name, p.expert)
	}
	s := &stack{name: p.name + ".lora_a", parts: []*safetensors.Tensor{t}, dims: fastestFirst(t.Shape)}
	b.alphaOf(p.name, stem)
	if up {
		s.name, s.order = p.name+".lora_b", b.order(p.name, s.dims)
	}
	if b.err == nil {
		b.tensors = append(b.tensors, s.made(typ))
	}
}

// alphaPattern is an alpha of modules whose names an expression fits.
type alphaPattern struct {
	fits  *regexp.Regexp
	alpha float32
}

// alphaPatterns reads alpha_pattern.
func (b *adapterBuilder) alphaPatterns(c values) {
	for _, key := range slices.Sorted(maps.Keys(c.m)) { // as PEFT saves them
		fits, err := regexp.Compile(`^(?:.*\.)?(?:` + key + `)$`)
		if alpha := c.number(key, 0); err != nil || alpha == 0 {
			c.fail(key, "is %s: want a regular expression of RE2, and a number that is not 0", brief(c.m[key]))
		} else {
			b.patterns = append(b.patterns, alphaPattern{fits, float32(alpha)})
		}
	}
}

// alphaOf notes the alpha of what a module, or one of those parameters, has for the model's tensor.
func (b *adapterBuilder) alphaOf(tensor, module string, parameters ...string) {
	for _, p := range b.patterns {
		if slices.ContainsFunc(append(parameters, module), p.fits.MatchString) {
			b.md[KeyAlphaOf+tensor] = p.alpha
			return
		}
	}
}
