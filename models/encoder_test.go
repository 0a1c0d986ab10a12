package models

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// encoderFile is the file of a small BERT after change. What encoders compute is tested
// in tts/embed.
func encoderFile(t *testing.T, change func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor) *gguf.File {
	t.Helper()
	f, err := gguf.Open("../tts/embed/testdata/bert.gguf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, change(f.Metadata, slices.Clone(f.Tensors))); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnEncoderThatCannotRunIsRefusedByName(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	without := func(name string) func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor {
		return func(_ gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
			return slices.DeleteFunc(ts, func(t gguf.Tensor) bool { return t.Name == name })
		}
	}
	for _, c := range []struct {
		change func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor
		want   string
	}{
		{setKey("bert.pooling_type", uint32(0)), "bert.pooling_type is 0: of this architecture want 1, 2 or 3"},
		{setKey("bert.pooling_type", uint32(4)), "bert.pooling_type is 4: of this architecture"},
		{setKey("bert.attention.layer_norm_epsilon", float32(-1)), "bert.attention.layer_norm_epsilon is missing or out of range"},
		{setKey("bert.context_length", uint32(700)), "position_embd.weight has shape [48 640]"},
		{setKey("general.architecture", "nomic-bert"), "nomic-bert.block_count is missing"},
		{without("position_embd.weight"), "tensor position_embd.weight is missing"},
		{without("token_embd_norm.bias"), "tensor token_embd_norm.bias is missing"},
		{without("blk.1.layer_output_norm.weight"), "tensor blk.1.layer_output_norm.weight is missing"},
		{without("blk.0.ffn_up.bias"), "tensor blk.0.ffn_up.bias is missing"},
	} {
		_, err := loadModel(encoderFile(t, c.change), LoadOptions{Pool: pool})
		if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("loading gave %v, want an error that says %q", err, c.want)
		}
	}
}

func TestAnEncoderComputesWholeSequencesAlone(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	m, err := loadModel(encoderFile(t, func(_ gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor { return ts }), LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	r := newRunner(t, m, kv.F32)
	r.feed(3, 5, 6, 7)
	if err := r.seq.Grow(2); err != nil {
		t.Fatal(err)
	}
	r.b.Reset()
	r.b.Add(r.seq, 3, 1, 8, 9)
	if err := m.Forward(&r.b, r.kv); !errors.Is(err, ErrBatch) || !strings.Contains(err.Error(), "is [3, 4] of a sequence of 5, which must be whole") {
		t.Errorf("a piece of a sequence: %v", err)
	}
	r.b.Reset()
	r.b.Add(r.seq, 0, 1, 5, 6, 7)
	if err := m.Forward(&r.b, r.kv); !errors.Is(err, ErrBatch) {
		t.Errorf("its beginning: %v", err)
	}
}
