package models

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// encoderFile is the file of a small BERT after change. What encoders compute is tested
// in tts/embed.
func encoderFile(t *testing.T, change func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor) *gguf.File {
	t.Helper()
	return readerFile(t, "bert", func(f *gguf.File) { f.Tensors = change(f.Metadata, slices.Clone(f.Tensors)) })
}

// readerFile is the file of a small model of tts/embed's tests after change.
func readerFile(t *testing.T, name string, change func(*gguf.File)) *gguf.File {
	t.Helper()
	f, err := gguf.Open("../tts/embed/testdata/" + name + ".gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	change(f)
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnEncoderThatCannotRunIsRefusedByName(t *testing.T) {
	sweep.NoEmulator(t)
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
		{setKey("bert.pooling_type", uint32(0)), "bert.pooling_type is 0: of this architecture want 1, 2, 3 or 4"},
		{setKey("bert.pooling_type", uint32(4)), "tensor cls.output.weight is missing"},
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

// dropTensors takes those tensors out of a file.
func dropTensors(f *gguf.File, names ...string) {
	f.Tensors = slices.DeleteFunc(f.Tensors, func(t gguf.Tensor) bool { return slices.Contains(names, t.Name) })
}

// repeatRows makes a matrix of a file twice as high.
func repeatRows(t *testing.T, f *gguf.File, name string) {
	t.Helper()
	i := slices.IndexFunc(f.Tensors, func(t gguf.Tensor) bool { return t.Name == name })
	m := f.Tensors[i]
	loaded, err := m.Load(0, m.Rows(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Tensors[i] = gguf.Tensor{Name: name, Type: m.Type, Dims: []int{m.Cols(), 2 * m.Rows()}, Data: slices.Concat(loaded.Data, loaded.Data)}
}

func TestAReaderThatCannotRunIsRefusedByName(t *testing.T) {
	sweep.NoEmulator(t)
	pool := pool.New(1)
	defer pool.Close()
	for _, c := range []struct {
		file   string
		change func(*gguf.File)
		want   string
	}{
		{"modern-bert", func(f *gguf.File) { f.Metadata["modern-bert.rope.freq_base_swa"] = float32(0) }, "modern-bert.rope.freq_base_swa is 0, want more than 1"},
		{"modern-bert", func(f *gguf.File) { f.Metadata["modern-bert.attention.sliding_window_pattern"] = uint32(0) }, "sliding_window_pattern is 0, want 1 to"},
		{"modern-bert", func(f *gguf.File) { f.Metadata["modern-bert.attention.sliding_window_pattern"] = []bool{true} }, "sliding_window_pattern has 1 values for "},
		{"modern-bert", func(f *gguf.File) { f.Metadata["modern-bert.attention.sliding_window_pattern"] = []int32{1} }, "sliding_window_pattern is [1], want one integer"},
		{"modern-bert", func(f *gguf.File) { f.Metadata["modern-bert.attention.sliding_window"] = int32(-8) }, "modern-bert.attention.sliding_window is -8"},
		{"modern-bert", func(f *gguf.File) { dropTensors(f, "blk.1.attn_norm.weight") }, "tensor blk.1.attn_norm.weight is missing"},
		{"modern-bert", func(f *gguf.File) { dropTensors(f, "output_norm.weight") }, "tensor output_norm.weight is missing"},
		{"modern-bert", func(f *gguf.File) { f.Metadata["modern-bert.pooling_type"] = uint32(1) }, "has no meaning for architecture modern-bert"},
		{"modern-bert", func(f *gguf.File) { f.Metadata["modern-bert.hidden_activation"] = "tanh" }, `modern-bert.hidden_activation is "tanh", want gelu or silu`},
		{"bert", func(f *gguf.File) { dropTensors(f, "cls.output.weight") }, "tensor cls.output.weight is missing"},
		{"bert", func(f *gguf.File) { repeatRows(t, f, "cls.output.weight") }, "cls.output.weight has 2 rows: an encoder that ranks has one"},
		{"bert", func(f *gguf.File) { repeatRows(t, f, "cls.weight") }, "tensor cls.weight has shape [32 64]"},
	} {
		_, err := loadModel(readerFile(t, "reference/"+c.file, c.change), LoadOptions{Pool: pool})
		if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: loading gave %v, want an error that says %q", c.file, err, c.want)
		}
	}
}

func TestAFileWithoutTheLayerAheadOfItsScoresIsReadWithAWarning(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	b, err := LoadFile(readerFile(t, "reference/bert", func(f *gguf.File) { dropTensors(f, "cls.weight", "cls.bias") }), LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Classifier == nil || !slices.ContainsFunc(b.Warnings, func(s string) bool { return strings.Contains(s, "the file has no cls.weight") }) {
		t.Errorf("a classifier %v with the warnings %q", b.Classifier, b.Warnings)
	}
}

func TestAPlainRerankerIsKnownByItsName(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	for name, ranks := range map[string]bool{"Qwen3 Reranker 0.6B": true, "qwen3-RERANKER": true, "Qwen3 0.6B": false} {
		b, err := LoadFile(readerFile(t, "reference/qwen3", func(f *gguf.File) {
			dropTensors(f, "cls.output.weight")
			delete(f.Metadata, "qwen3.pooling_type")
			f.Metadata["general.name"] = name
		}), LoadOptions{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		c := b.Model.Config()
		if (b.Classifier != nil) != ranks || c.Generates() == ranks || (b.Rerank != "") != ranks {
			t.Errorf("%q: a classifier %v, generates %t, reads %q", name, b.Classifier, c.Generates(), b.Rerank)
		}
		b.Close()
	}
}
