package models

import (
	"errors"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

func TestLayersOfOnePartThatAreNotAllSaidAreRefusedByName(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for _, c := range []struct {
		file, key string
		value     any
		want      string
	}{
		{"nemotron_h", "feed_forward_length", uint32(48), "feed_forward_length is [], want one number for each of 5 layers, 0 to"},
		{"nemotron_h", "feed_forward_length", []int32{0, 0, 48}, "feed_forward_length is [0 0 48], want one number for each of 5 layers"},
		{"nemotron_h", "feed_forward_length", []int32{0, 48, 48, 0, 48}, "layer 1 has both"},
		{"nemotron_h", "feed_forward_length", []int32{0, 0, 0, 0, 48}, "blk.2.ssm_in.weight is missing"},
		{"nemotron_h", "attention.head_count_kv", []int32{0, 0, 0, 0, 0}, "attention.head_count_kv is [0 0 0 0 0]"},
		{"nemotron_h", "expert_count", uint32(4), "mixtures of experts are not supported"},
		{"mamba2", "attention.head_count", uint32(4), "attention.head_count is 4, want 0 to 0"},
		{"mamba2", "attention.head_count_kv", []int32{0, 2}, "attention.head_count_kv is [0 2]"},
		{"mamba2", "feed_forward_length", uint32(48), "feed_forward_length is 48"},
		{"mamba2", "block_count", uint32(3), "blk.2.attn_norm.weight is missing"},
		{"mamba2", "ssm.group_count", uint32(3), "4 heads in 3 groups"},
		{"mamba2", "ssm.inner_size", uint32(1 << 31), "ssm.inner_size is 2147483648"},
		{"nemotron_h_moe", "expert_feed_forward_length", []int32{0, 16, 0, 0, 8}, "expert_feed_forward_length is [0 16 0 0 8], want one integer"},
		{"nemotron_h_moe", "expert_gating_func", uint32(1), "expert_gating_func is 1"},
		{"nemotron_h_moe-latent", "moe_latent_size", uint32(8), "blk.0.ffn_up_exps.weight has shape [16 16 4], want [8 16 4]"},
	} {
		arch, _, _ := strings.Cut(c.file, "-")
		_, err := Load("testdata/transformers/"+c.file+".gguf", LoadOptions{Pool: p, Metadata: gguf.Metadata{arch + "." + c.key: c.value}})
		if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s %v: loading gave %v, want an error that says %q", c.file, c.key, c.value, err, c.want)
		}
	}
}

// llama.cpp's converter counts the layers that predict further ahead in its lists, and some of its files have no epsilon of
// RMSNorm.
func TestListsOfLayersMayGoOnForThosePredictingFurtherAhead(t *testing.T) {
	const name = "testdata/transformers/nemotron_h_moe.gguf"
	tokens := transformersTokens()
	want := newRunner(t, openModel(t, name, LoadOptions{}), kv.F16).feed(len(tokens), tokens...)
	f, err := gguf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, key := range []string{"attention.head_count_kv", "feed_forward_length"} {
		list, _ := f.Metadata.Ints("nemotron_h_moe." + key)
		longer := []int32{2} // of the sixth
		for i := range list {
			longer = append(longer[:i], int32(list[i]), 2)
		}
		f.Metadata["nemotron_h_moe."+key] = longer
	}
	f.Metadata["nemotron_h_moe.block_count"], f.Metadata["nemotron_h_moe.nextn_predict_layers"] = uint32(6), uint32(1)
	f.Metadata["nemotron_h_moe.attention.layer_norm_epsilon"] = f.Metadata["nemotron_h_moe.attention.layer_norm_rms_epsilon"]
	delete(f.Metadata, "nemotron_h_moe.attention.layer_norm_rms_epsilon")
	p := pool.New(1)
	defer p.Close()
	m, err := loadModel(f, LoadOptions{Pool: p})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	compareBits(t, "with a predictor", newRunner(t, m, kv.F16).feed(len(tokens), tokens...), want)
}
