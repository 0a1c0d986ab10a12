package npu

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestAFileOfAMixtureWithoutItsExpertsIsRefused(t *testing.T) {
	tensor := func(name string, typ gguf.Type, dims ...int) gguf.Tensor {
		n := 1
		for _, d := range dims {
			n *= d
		}
		return gguf.Tensor{Name: name, Type: typ, Dims: dims, Data: make([]byte, n/typ.BlockLen()*typ.BlockBytes())}
	}
	md := gguf.Metadata{"general.architecture": "llama", "llama.attention.head_count": uint32(2), "llama.embedding_length": uint32(256),
		"llama.block_count": uint32(1), "llama.expert_count": uint32(4), "llama.expert_used_count": uint32(2)}
	list := []gguf.Tensor{tensor("token_embd.weight", gguf.F16, 256, 64), tensor("blk.0.attn_k.weight", gguf.TQ2_0, 256, 128), tensor("blk.0.attn_q.weight", gguf.TQ2_0, 256, 256)}
	mixture := func(md gguf.Metadata, list []gguf.Tensor) (*Mixture, error) {
		t.Helper()
		var b bytes.Buffer
		if err := gguf.Write(&b, md, list); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return FileMixture("m", f)
	}
	if _, err := mixture(md, list); err == nil || !strings.Contains(err.Error(), "layer 0 has no ffn_gate of experts") {
		t.Errorf("without experts: %v", err)
	}
	older := slices.Clone(list) // a tensor an expert
	for _, part := range []string{"gate", "up", "down"} {
		list = append(list, tensor("blk.0.ffn_"+part+"_exps.weight", gguf.TQ2_0, 256, 256, 4))
		older = append(older, tensor("blk.0.ffn_"+part+".0.weight", gguf.TQ2_0, 256, 256))
	}
	want, err := mixture(md, list)
	if err != nil || want.Shape.Width != 256 || want.Shape.Chosen != 2 || len(want.Dense.Matrices) != 3 {
		t.Fatalf("a mixture: %v, %+v", err, want)
	}
	if m, err := mixture(md, older); err != nil || m.Shape != want.Shape || len(m.Dense.Matrices) != 3 {
		t.Errorf("an older file: %v, %+v", err, m)
	}
	for what, n := range map[string]uint32{"4294967295 layers": 1<<32 - 1, "0 of 4": 0} {
		key := "llama.block_count"
		if n == 0 {
			key = "llama.expert_used_count"
		}
		bad := gguf.Metadata{}
		for k, v := range md {
			bad[k] = v
		}
		bad[key] = n
		if _, err := mixture(bad, list); err == nil {
			t.Errorf("%s are planned", what)
		}
	}
	delete(md, "llama.expert_count")
	if _, err := mixture(md, list); err == nil || !strings.Contains(err.Error(), "no mixtures of experts") {
		t.Errorf("a model without experts: %v", err)
	}
}
