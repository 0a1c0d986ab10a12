package huggingface

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// Earlier versions of transformers write other keys for the same model, and leave out what a
// class has by default.
func TestConfigsOfEarlierVersionsMeanTheSame(t *testing.T) {
	without := func(c map[string]any, keys ...string) {
		for _, k := range keys {
			delete(c, k)
		}
	}
	for dir, change := range map[string]func(c map[string]any){
		"llama": func(c map[string]any) {
			rope := c["rope_parameters"].(map[string]any)
			c["rope_theta"] = rope["rope_theta"]
			delete(rope, "rope_theta")
			c["rope_scaling"] = rope
			without(c, "rope_parameters", "head_dim", "tie_word_embeddings")
		},
		"qwen2": func(c map[string]any) {
			c["rope_theta"] = 1e6
			c["rope_scaling"] = map[string]any{"type": "yarn", "factor": 4, "original_max_position_embeddings": 32}
			c["sliding_window"], c["use_sliding_window"], c["max_window_layers"] = 4096, false, 28
			without(c, "rope_parameters", "layer_types")
		},
		"gemma2": func(c map[string]any) {
			c["rope_theta"], c["hidden_act"] = 10000.0, c["hidden_activation"]
			without(c, "rope_parameters", "layer_types", "hidden_activation", "tie_word_embeddings")
		},
		"gemma3": func(c map[string]any) {
			c["rope_scaling"] = map[string]any{"rope_type": "linear", "factor": 4}
			c["sliding_window_pattern"] = 2
			without(c, "rope_parameters", "layer_types", "rms_norm_eps", "hidden_activation")
			c["rms_norm_eps"] = 1e-5
		},
		"phi3": func(c map[string]any) {
			rope := c["rope_parameters"].(map[string]any)
			c["rope_theta"] = rope["rope_theta"]
			c["rope_scaling"] = map[string]any{"type": "su", "short_factor": rope["short_factor"], "long_factor": rope["long_factor"]}
			without(c, "rope_parameters", "partial_rotary_factor")
		},
		"qwen3_moe": func(c map[string]any) {
			c["num_experts"], c["rope_theta"], c["rope_scaling"] = c["num_local_experts"], 10000.0, nil
			without(c, "num_local_experts", "rope_parameters")
		},
	} {
		old := copied(t, dir)
		edit(t, old, fileConfig, change)
		want, got := open(t, filepath.Join(testdata, dir)), open(t, old)
		for _, f := range []*gguf.File{want, got} {
			delete(f.Metadata, "general.name")
			for _, size := range []string{"key", "value"} { // which says what is so anyway
				delete(f.Metadata, "llama.attention."+size+"_length")
			}
		}
		if !reflect.DeepEqual(got.Metadata, want.Metadata) {
			for k, v := range want.Metadata {
				if !reflect.DeepEqual(got.Metadata[k], v) {
					t.Errorf("%s: %s is %v, want %v", dir, k, got.Metadata[k], v)
				}
			}
			t.Errorf("%s: %d keys, want %d", dir, len(got.Metadata), len(want.Metadata))
		}
		if a, b := want.Tensor("rope_freqs.weight"), got.Tensor("rope_freqs.weight"); a != nil && !reflect.DeepEqual(floats(t, a), floats(t, b)) {
			t.Errorf("%s: rope_freqs.weight is %v, want %v", dir, floats(t, b), floats(t, a))
		}
	}
}

// Gemma 3 that sees pictures has the language model's config and tensors within its own.
func TestTheLanguageModelOfOneThatSeesPicturesIsRead(t *testing.T) {
	dir := copied(t, "gemma3")
	edit(t, dir, fileConfig, func(c map[string]any) {
		text := map[string]any{}
		for k, v := range c {
			text[k] = v
		}
		clear(c)
		c["model_type"], c["text_config"], c["architectures"] = "gemma3", text, []string{"Gemma3ForConditionalGeneration"}
	})
	want, got := open(t, filepath.Join(testdata, "gemma3")), open(t, dir)
	delete(want.Metadata, "general.name")
	delete(got.Metadata, "general.name")
	if !reflect.DeepEqual(got.Metadata, want.Metadata) {
		t.Errorf("keys %v, want %v", got.Metadata, want.Metadata)
	}
}

func TestNamesOfTensorsWithAndWithoutPrefixesAreOne(t *testing.T) {
	b := newBuilder("")
	b.arch = architectures["gemma3_text"]
	b.config.folder = b.folder
	for name, want := range map[string]string{
		"model.layers.3.self_attn.q_proj.weight":               "blk.3.attn_q.weight",
		"layers.3.self_attn.q_proj.weight":                     "blk.3.attn_q.weight",
		"language_model.model.layers.3.mlp.up_proj.weight":     "blk.3.ffn_up.weight",
		"model.language_model.layers.3.input_layernorm.weight": "blk.3.attn_norm.weight",
		"language_model.model.embed_tokens.weight":             "token_embd.weight",
		"language_model.lm_head.weight":                        "output.weight",
		"lm_head.weight":                                       "output.weight",
		"model.vision_tower.encoder.layers.0.mlp.fc1.weight":   "",
		"multi_modal_projector.mm_soft_emb_norm.weight":        "",
		"model.layers.0.self_attn.rotary_emb.inv_freq":         "",
	} {
		p, wanted := b.place(named(name))
		if b.err != nil || wanted != (want != "") || wanted && p.name != want {
			t.Errorf("%s is %q, %t, %v; want %q", name, p.name, wanted, b.err, want)
		}
	}
	for _, name := range []string{"model.layers.03.mlp.up_proj.weight", "model.layers.-1.mlp.up_proj.weight", "model.layers.9999999999.mlp.up_proj.weight", "model.layers.1.mlp.up_proj", "up_proj.weight", ""} {
		b.err = nil
		if _, wanted := b.place(named(name)); wanted || b.err == nil {
			t.Errorf("%q has a place", name)
		}
	}
}

func named(name string) *safetensors.Tensor { return &safetensors.Tensor{Name: name} }

func TestNumbersThatPythonWritesAreReadAsMissing(t *testing.T) {
	v := values{folder: &folder{}}
	v.parse([]byte(`{"time_step_limit": [0.0, Infinity], "x": -Infinity, "y": NaN, "text": "NaN and \"Infinity\""}`))
	if limits := v.list("time_step_limit"); v.folder.err != nil || len(limits) != 2 || limits[1] != nil || v.has("x") || v.has("y") || v.text("text", "") != `NaN and "Infinity"` {
		t.Errorf("%v, %v", v.m, v.folder.err)
	}
}
