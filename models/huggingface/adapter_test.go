package huggingface

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestAdaptersThatAreMoreThanLoRAAreRefusedByKey(t *testing.T) {
	weights, err := os.ReadFile("../testdata/lora/llama-some/adapter_model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	llama := gguf.Metadata{"general.architecture": "llama", "llama.attention.head_count": uint32(4), "llama.attention.head_count_kv": uint32(2)}
	const plain = `"peft_type":"LORA","r":9,"lora_alpha":12`
	for _, c := range []struct {
		config string
		model  gguf.Metadata
		want   string
	}{
		{plain, llama, ""},
		{plain + `,"use_dora":true`, llama, "use_dora"},
		{plain + `,"modules_to_save":["lm_head"]`, llama, "modules_to_save"},
		{plain + `,"alora_invocation_tokens":[1]`, llama, "alora_invocation_tokens"},
		{plain + `,"alpha_pattern":{"q_proj":3}`, llama, ""},
		{plain + `,"alpha_pattern":{"(q_proj":3}`, llama, "alpha_pattern: (q_proj"},
		{plain + `,"alpha_pattern":{"q_proj":"3"}`, llama, "alpha_pattern: q_proj"},
		{plain + `,"fan_in_fan_out":true`, llama, "fan_in_fan_out"},
		{plain + `,"something_new":1`, llama, "something_new"},
		{plain + `,"init_lora_weights":"pissa"`, llama, "init_lora_weights"},
		{plain + `,"bias":"all"`, llama, "bias"},
		{`"peft_type":"IA3","r":9,"lora_alpha":12`, llama, "peft_type"},
		{`"peft_type":"LORA","lora_alpha":12`, llama, "r is missing"},
		{`"peft_type":"LORA","r":9`, llama, "lora_alpha is missing"},
		{`"peft_type":"LORA","r":9,"lora_alpha":NaN`, llama, fileAdapter},
		{`"peft_type":"LORA","r":9,"lora_alpha":1e300`, llama, "lora_alpha"},
		{plain, gguf.Metadata{"general.architecture": "bitnet-25"}, "bitnet-25"},
		{plain, gguf.Metadata{"general.architecture": "exaone"}, "exaone"},
		{plain, gguf.Metadata{"general.architecture": "llama"}, "unlike heads"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileAdapter), []byte("{"+c.config+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, adapterWeights), weights, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenAdapter(dir, &gguf.File{Metadata: c.model})
		switch {
		case err == nil:
			f.Close()
			if c.want != "" {
				t.Errorf("{%s} was read, want an error that says %q", c.config, c.want)
			}
		case c.want == "" || !strings.Contains(err.Error(), c.want):
			t.Errorf("{%s}: %v, want an error that says %q", c.config, err, c.want)
		}
	}
	if _, err := OpenAdapter(t.TempDir(), &gguf.File{Metadata: llama}); err == nil || !strings.Contains(err.Error(), fileAdapter+" is missing") {
		t.Errorf("an empty folder: %v", err)
	}
}

// What the two matrices of all experts, or of kv_b_proj, do not fit is refused by name.
func TestAdaptersOfOtherExpertsAndLatentsAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		adapter, arch string
		tensors       []gguf.Tensor
		want          string
	}{
		{"qwen3_moe-experts", "qwen3moe", nil, "the model has no blk.0.ffn_down_exps.weight"},
		{"qwen3_moe-experts", "qwen3moe", []gguf.Tensor{{Name: "blk.0.ffn_down_exps.weight", Dims: []int{24, 32, 4}}}, "they add neither to gate and up, [48 32], nor to down, [32 24], of 4 experts"},
		{"qwen3_moe-experts", "qwen3moe", []gguf.Tensor{{Name: "blk.0.ffn_down_exps.weight", Dims: []int{16, 32, 4}}}, "experts without gates"},
		{"deepseek2-latent", "deepseek2", nil, "the model has no blk.0.attn_k_b.weight and blk.0.attn_v_b.weight"},
		{"deepseek2-latent", "deepseek2", []gguf.Tensor{{Name: "blk.0.attn_k_b.weight", Dims: []int{8, 16, 4}}, {Name: "blk.0.attn_v_b.weight", Dims: []int{16, 8, 4}}}, "want [2 16] and [64 2]"},
		{"qwen3_moe-experts", "qwen3", nil, "mlp.experts"},
	} {
		for i := range c.tensors {
			c.tensors[i].Type, c.tensors[i].Data = gguf.F32, make([]byte, 4*c.tensors[i].Len())
		}
		model, err := gguf.Assemble(gguf.Metadata{"general.architecture": c.arch, c.arch + ".attention.head_count": uint32(4), c.arch + ".expert_count": uint32(4)}, c.tensors, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := OpenAdapter("../testdata/lora/"+c.adapter, model); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, %v, want an error that says %q", c.adapter, c.arch, f, err, c.want)
		}
	}
}

// The BitNet of 2024 has Llama's model_type, but not the order of its rows.
func TestAnAdapterHasTheOrderOfRowsOfItsModelsArchitecture(t *testing.T) {
	for name, paired := range map[string]bool{"llama": true, "bitnet": false, "granite": true, "gemma-embedding": false} {
		b := &adapterBuilder{builder: newBuilder("")}
		b.ofModel(gguf.Metadata{"general.architecture": name, name + ".attention.head_count": uint32(4)})
		if b.err != nil || b.arch.name != name || b.arch.paired != paired {
			t.Errorf("%s is %s, paired %t, %v", name, b.arch.name, b.arch.paired, b.err)
		}
	}
}
