package models

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// What is no adapter of the model is an error, and what is one computes.
func FuzzAdapter(f *testing.F) {
	b := loadBase(f, "llama", 1, LoadOptions{})
	whole, err := os.ReadFile(loras + "/llama-all.gguf")
	if err != nil {
		f.Fatal(err)
	}
	config, err := os.ReadFile(loras + "/llama-some/adapter_config.json")
	if err != nil {
		f.Fatal(err)
	}
	weights, err := os.ReadFile(loras + "/llama-some/adapter_model.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, []byte(nil))
	f.Add(config, weights)
	f.Add(config, weights[:len(weights)/2])
	f.Add([]byte(`{"peft_type":"LORA","r":1,"lora_alpha":1,"use_dora":true}`), weights)
	f.Fuzz(func(t *testing.T, file, tensors []byte) {
		var g *gguf.File
		if len(tensors) == 0 {
			if g, err = gguf.Parse(file); err != nil {
				return
			}
		} else {
			if len(tensors) > 8 && binary.LittleEndian.Uint64(tensors) > 1<<20 {
				return
			}
			dir := t.TempDir()
			if os.WriteFile(filepath.Join(dir, "adapter_config.json"), file, 0o600) != nil || os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), tensors, 0o600) != nil {
				t.Fatal("no room")
			}
			if g, err = openAdapter(dir, b.file); err != nil {
				return
			}
			defer g.Close()
		}
		a, err := loadAdapter(g, b.exec, nil)
		if err != nil {
			return
		}
		v := variant(t, b, Use{a, 1})
		if v == nil {
			t.Fatal("no variant")
		}
		if err := a.memory.Free(); err != nil {
			t.Error(err)
		}
	})
}
