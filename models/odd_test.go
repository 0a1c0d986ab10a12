package models

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
)

// fill overwrites the data of tensors whose names end so.
func fill(suffix string, b byte) func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor {
	return func(_ gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
		for i := range ts {
			if strings.HasSuffix(ts[i].Name, suffix) {
				ts[i].Data = slices.Repeat([]byte{b}, ts[i].Bytes())
			}
		}
		return ts
	}
}

func setKey(key string, v any) func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor {
	return func(md gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
		if md[key] = v; v == nil {
			delete(md, key)
		}
		return ts
	}
}

func TestOddFilesLoadWithAWarning(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	unaltered := len(loaded(t, pool, altered(t, fill("no such tensor", 0))).Warnings)
	for _, c := range []struct {
		change func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor
		want   string
	}{
		{setKey("tokenizer.ggml.eos_token_id", uint32(384)), "tokenizer.ggml.eos_token_id is 384, which is no token of 384"},
		{setKey("tokenizer.ggml.eos_token_id", uint32(math.MaxUint32)), "no token ends an answer"},
		{setKey("tokenizer.ggml.eos_token_id", nil), "no token ends an answer"},
		{setKey("tokenizer.ggml.bos_token_id", int32(-1)), "tokenizer.ggml.bos_token_id is -1"},
		{setKey("tokenizer.ggml.token_type", nil), "no tokenizer.ggml.token_type in the file"},
		{setKey("tokenizer.ggml.merges", []string{}), "tokenizer.ggml.merges is empty"},
		{setKey("tokenizer.ggml.merges", []string{"a b", "a b", "ab"}), "2 of 3 merges are no pair of symbols"},
		{setKey("llama.attention.layer_norm_rms_epsilon", float32(0)), "layer_norm_rms_epsilon is 0"},
		{fill("blk.0.ffn_up.weight", 0), "tensor blk.0.ffn_up.weight holds zeros alone"},
		{fill("blk.1.attn_norm.weight", 0), "tensor blk.1.attn_norm.weight holds zeros alone"},
		{fill("blk.0.attn_v.weight", 0x80), ""}, // negative, and tiny in F16
		{fill(".weight", 0), "holds zeros alone"},
	} {
		if c.want == "holds zeros alone" {
			f := c.change
			c.change = func(md gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
				factors := slices.IndexFunc(ts, func(t gguf.Tensor) bool { return t.Name == "rope_freqs.weight" })
				return f(md, slices.Delete(ts, factors, factors+1))
			}
			c.want = "tensor blk.0.attn_k.weight and 19 others hold zeros alone"
		}
		b := loaded(t, pool, altered(t, c.change))
		if c.want == "" {
			if len(b.Warnings) != unaltered {
				t.Errorf("warnings %q, want none more than without the change", b.Warnings)
			}
			continue
		}
		if !slices.ContainsFunc(b.Warnings, func(w string) bool { return strings.Contains(w, c.want) }) {
			t.Errorf("warnings %q, want one that says %q", b.Warnings, c.want)
		}
	}
}

// loaded is LoadFile for files that can be loaded.
func loaded(t *testing.T, pool *pool.Pool, f *gguf.File) *Bundle {
	t.Helper()
	b, err := LoadFile(f, LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestWeightsThatAreNotNumbersAreRefused(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	for _, bits := range []uint16{0x7c00, 0xfc00, 0x7e00} { // infinities and NaN
		for _, name := range []string{"blk.0.ffn_down.weight", "blk.1.attn_k.weight", "token_embd.weight"} {
			file := altered(t, func(_ gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
				i := slices.IndexFunc(ts, func(t gguf.Tensor) bool { return t.Name == name })
				whole, err := ts[i].Load(0, ts[i].Rows(), nil)
				if err != nil {
					t.Fatal(err)
				}
				ts[i].Data = slices.Clone(whole.Data)
				binary.LittleEndian.PutUint16(ts[i].Data[2*(3*ts[i].Cols()+5):], bits)
				return ts
			})
			_, err := loadModel(file, LoadOptions{Pool: pool})
			if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "tensor "+name+": row 3 holds a number that is infinite or NaN") {
				t.Errorf("%s with %#x: %v, want an error that names the tensor and row", name, bits, err)
			}
		}
	}
}
