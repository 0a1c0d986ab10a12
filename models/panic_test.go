package models

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
)

// transformersFile is a file of testdata in memory.
func transformersFile(t *testing.T, name string) *gguf.File {
	t.Helper()
	raw, err := os.ReadFile("testdata/transformers/" + name + ".gguf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAPanicWhileAModelLoadsIsAnErrorThatNamesItsTensor(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	calls := 0
	_, err := Load("testdata/transformers/granite.gguf", LoadOptions{Pool: pool, Interrupt: func() error {
		if calls++; calls > 3 {
			panic("boom")
		}
		return nil
	}})
	var p *parallel.Panic
	if !errors.As(err, &p) || !errors.Is(err, ErrModel) || !strings.Contains(string(p.Stack), "panic_test.go") {
		t.Fatalf("Load = %v, want a panic with its stack", err)
	}
	if said := err.Error(); !strings.HasPrefix(said, "testdata/transformers/granite.gguf: ") || !strings.Contains(said, "tensor blk.0.") || !strings.HasSuffix(said, "panic: boom") {
		t.Errorf("Load = %q, which does not say file, tensor and panic", said)
	}
	b := loadBase(t, "llama", 1, LoadOptions{})
	_, err = b.LoadAdapter("a", loras+"/llama-all", func() error { panic("boom") })
	if !errors.As(err, &p) || !errors.Is(err, ErrAdapter) || !strings.Contains(err.Error(), ".lora_") {
		t.Errorf("LoadAdapter = %v, want a panic that names a tensor", err)
	}
}

func TestAFaultAheadOfWhatFollowsFromItIsNamed(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	for _, c := range []struct {
		file, without, key string
		value              any
		want               string
	}{
		{"qwen3next", "blk.0.attn_qkv.weight", "", nil, "tensor blk.0.attn_qkv.weight is missing"}, // then a stack of no gates
		{"gemma4", "", "gemma4.attention.sliding_window_pattern", []bool{true}, "gemma4.attention.sliding_window_pattern has 1 values for"},
	} {
		f := transformersFile(t, c.file)
		if c.key != "" {
			f.Metadata[c.key] = c.value
		}
		f = rewritten(t, f.Metadata, slices.DeleteFunc(slices.Clone(f.Tensors), func(m gguf.Tensor) bool { return m.Name == c.without }))
		_, err := LoadFile(f, LoadOptions{Pool: pool})
		var p *parallel.Panic
		if err == nil || errors.As(err, &p) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %q", c.file, err, c.want)
		}
	}
}
