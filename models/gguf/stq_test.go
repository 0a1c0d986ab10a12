package gguf

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// readGolden returns blocks of a type and the weights in them, which are as another decoder has them.
func readGolden(t *testing.T, typ Type, path string) (blocks []byte, got []float32) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Blocks  string
		Weights []float32
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	blocks, err = hex.DecodeString(golden.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	got = make([]float32, len(golden.Weights))
	if err := dequantize(typ, got, blocks); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, golden.Weights) {
		t.Fatalf("weights are\n%v, want\n%v", got, golden.Weights)
	}
	return blocks, got
}

func TestBlocksOfQ2_0CReadAsAnotherDecoderDoes(t *testing.T) {
	readGolden(t, Q2_0C, "testdata/q2_0c.json")
}

func TestBlocksOfSTQ1_0ReadAsAnotherDecoderDoesAndAreWrittenBack(t *testing.T) {
	blocks, got := readGolden(t, STQ1_0, "testdata/stq1_0.json")
	written := make([]byte, len(blocks))
	if err := Quantize(STQ1_0, written, got); err != nil {
		t.Fatal(err)
	}
	again := make([]float32, len(got))
	if err := dequantize(STQ1_0, again, written); err != nil || !slices.Equal(again, got) {
		t.Fatalf("weights read back as\n%v (%v), want\n%v", again, err, got)
	}
	if !slices.Equal(written[:42], blocks[:42]) { // the second one's scale is negative
		t.Errorf("a block is written as\n%x, want\n%x", written[:42], blocks[:42])
	}
}

func TestWeightsThatSTQ1_0CannotHoldAreRefused(t *testing.T) {
	sparse := func() []float32 {
		x := make([]float32, 256)
		for i := range x {
			x[i] = []float32{0, 0.5, -0.5, 0.5}[i/16%4]
		}
		return x
	}
	dst := make([]byte, 42)
	if err := Quantize(STQ1_0, dst, sparse()); err != nil {
		t.Fatal(err)
	}
	if err := Quantize(STQ1_0, dst, make([]float32, 256)); err != nil {
		t.Fatalf("a block of zeros: %v", err)
	}
	for name, change := range map[string]func(x []float32){
		"no zero":       func(x []float32) { x[3] = 0.5 },
		"two zeros":     func(x []float32) { x[20] = 0 },
		"another size":  func(x []float32) { x[20] = 0.25 },
		"a larger size": func(x []float32) { x[20] = 1 },
	} {
		x := sparse()
		change(x)
		if err := Quantize(STQ1_0, dst, x); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "one of four") {
			t.Errorf("%s: Quantize() = %v, want ErrFormat", name, err)
		}
	}
}
