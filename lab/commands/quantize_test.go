package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/gguf/parts"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// halves writes an embedded model in F16 and returns its path.
func halves(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+"-f16.gguf")
	mustLutra(t, "quantize", name, path, "F16")
	return path
}

func TestAModelIsQuantisedAndRuns(t *testing.T) {
	f16 := halves(t, "lutra-tiny-s")
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("Now she has 12+36=48.\nNow she has 48+2=50.\n", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	perplexity := func(model string) float64 {
		var r struct{ Perplexity float64 }
		if err := json.Unmarshal([]byte(mustLutra(t, "perplexity", "--json", "--model", model, "--file", text, "--context", "64", "--packing", "stored")), &r); err != nil {
			t.Fatal(err)
		}
		return r.Perplexity
	}
	whole := perplexity(f16)
	sums := filepath.Join(dir, "imatrix.gguf")
	mustLutra(t, "imatrix", "--model", f16, "-f", text, "-o", sums, "--context", "64")
	for _, typ := range []string{"TQ2_0", "Q4_K_M", "IQ4_XS"} {
		out := filepath.Join(dir, typ+".gguf")
		var r quantized
		if err := json.Unmarshal([]byte(mustLutra(t, "quantize", "--json", "--imatrix", sums, "--token-embedding-type", "f16", f16, out, strings.ToLower(typ))), &r); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(out); err != nil || r.After > info.Size() || r.After < info.Size()*9/10 {
			t.Errorf("%s: %d bytes of tensors in a file of %v, %v", typ, r.After, info, err)
		}
		got := perplexity(out)
		if limit := map[string]float64{"TQ2_0": 1, "Q4_K_M": 1.1, "IQ4_XS": 1.1}[typ]; got > whole*limit {
			t.Errorf("%s: perplexity %.4f, of F16 %.4f", typ, got, whole)
		}
		if typ == "TQ2_0" && (r.Ternary != 21 || r.Lossless != 21 || r.Error != 0) {
			t.Errorf("TQ2_0: %d ternary tensors, %d of them lossless, error %v", r.Ternary, r.Lossless, r.Error)
		}
		if typ == "Q4_K_M" && (r.Error < 0.001 || r.Error > 0.1 || !r.Tensors[1].Weighed) {
			t.Errorf("Q4_K_M: error %v, %+v", r.Error, r.Tensors[1])
		}
	}
}

func TestADirectoryOfSafetensorsIsQuantised(t *testing.T) {
	out := filepath.Join(t.TempDir(), "q8_0.gguf")
	mustLutra(t, "quantize", saved(t, "qwen3"), out, "Q8_0")
	f, err := gguf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := f.Tensor("blk.0.attn_q.weight").Type; got != gguf.Q8_0 {
		t.Errorf("attn_q is %v", got)
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	out := mustLutra(t, "quantize", "--dry-run", "--tensor-type", "ffn_down=Q8_0", halves(t, "lutra-tiny-s"), "Q4_K_M")
	if !strings.Contains(out, "blk.0.ffn_down.weight") || !strings.Contains(out, "Q8_0") || !strings.Contains(out, "bits a weight") || strings.Contains(out, "error") {
		t.Error(out)
	}
}

func TestPartsBecomeOneFile(t *testing.T) {
	f, err := cli.OpenStored(t.Context(), "lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first := filepath.Join(t.TempDir(), "s-00001-of-00002.gguf")
	name, _ := parts.Parse(first)
	for no, tensors := range [][]gguf.Tensor{f.Tensors[:9], f.Tensors[9:]} {
		meta := gguf.Metadata{"split.no": uint16(no), "split.count": uint16(2), "split.tensors.count": int32(len(f.Tensors))}
		for key, v := range f.Metadata {
			if no == 0 {
				meta[key] = v
			}
		}
		out, err := os.Create(name.Part(no + 1))
		if err == nil {
			err = errors.Join(gguf.Write(out, meta, tensors), out.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	whole := filepath.Join(t.TempDir(), "whole.gguf")
	mustLutra(t, "quantize", first, whole, "TQ2_0")
	g, err := gguf.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if g.Parts() != 1 || len(g.Tensors) != len(f.Tensors) {
		t.Errorf("%d tensors in %d parts", len(g.Tensors), g.Parts())
	}
	_, err = lutra(t, "quantize", first, name.Part(2), "TQ2_0")
	if err == nil || !strings.Contains(err.Error(), "is read") {
		t.Errorf("writing over a part: %v", err)
	}
}

func TestSumsOfExpertsHaveACountEach(t *testing.T) {
	dir := t.TempDir()
	text, out := filepath.Join(dir, "text"), filepath.Join(dir, "imatrix.gguf")
	if err := os.WriteFile(text, []byte(strings.Repeat("Now she has 12+36=48.\n", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	mustLutra(t, "imatrix", "--model", "lutra-tiny-moe", "--file", text, "--out", out, "--context", "32", "--chunks", "2")
	f, err := gguf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	counts := f.Tensor("blk.0.ffn_up_exps.weight.counts")
	v := make([]float32, counts.Len())
	if err := counts.Dequantize(v, 0); err != nil {
		t.Fatal(err)
	}
	rows := float32(0)
	for _, n := range v {
		rows += n
	}
	if len(v) != 16 || rows != 2*32*3 { // each row takes three of 16 experts
		t.Errorf("%d experts with %v rows", len(v), rows)
	}
	if f.Tensor("token_embd.weight.in_sum2") != nil {
		t.Error("the output's matrix is measured unasked")
	}
}

func TestMistakesOfQuantisingAreSaid(t *testing.T) {
	dir := t.TempDir()
	f16 := halves(t, "lutra-tiny-s")
	out := filepath.Join(dir, "out.gguf")
	for _, c := range []struct {
		args string
		says string
	}{
		{f16, "OUT is missing"}, {f16 + " " + out + " Q9_9", `"Q9_9" is none of`}, {"--dry-run " + f16 + " Q4_K_M x y", "got 4"},
		{f16 + " " + f16 + " Q4_0", "is read"}, {f16 + " " + dir + " Q4_0", "folder"},
		{"--tensor-type ffn " + f16 + " " + out + " Q4_0", "PATTERN=TYPE"}, {"--tensor-type ( " + f16 + " " + out + " Q4_0", "PATTERN=TYPE"},
		{"--tensor-type (=Q4_0 " + f16 + " " + out + " Q4_0", "missing closing"}, {"--tensor-type a=Q3_K " + f16 + " " + out + " Q4_0", `"Q3_K" is none of`},
		{"--output-tensor-type Q2_K " + f16 + " " + out + " Q4_0", `"Q2_K" is none of`},
	} {
		_, err := lutra(t, append([]string{"quantize"}, strings.Fields(c.args)...)...)
		var mistake usage.Error
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("lutra-lab quantize %s: %v, want a mistake that says %s", c.args, err, c.says)
		}
	}
	for _, c := range [][]string{{"--imatrix", f16, f16, out, "Q4_0"}, {"lutra-tiny-s", out, "Q4_0"}} {
		_, err := lutra(t, append([]string{"quantize"}, c...)...)
		if err == nil {
			t.Errorf("lutra-lab quantize %v succeeds", c)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	for _, args := range [][]string{{"imatrix"}, {"imatrix", "--file", "x"}, {"imatrix", "--file", "x", "--out", "y", "--chunks", "-1"}} {
		_, err := lutra(t, args...)
		var mistake usage.Error
		if !errors.As(err, &mistake) {
			t.Errorf("lutra %v: %v", args, err)
		}
	}
}

func TestQuantisingWhatIsNotTernaryToFewBitsIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.gguf")
	f, err := os.Create(plain)
	if err == nil {
		err = errors.Join(synthetic.Write(f, synthetic.Shape{Name: "plain", Hidden: 256, FFN: 512, Layers: 1, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 64, RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Llama},
			synthetic.Options{Blocks: gguf.F16, Head: gguf.F16, Seed: 7}), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		warned   bool
	}{{plain, "tq2_0", true}, {plain, "q2_0", true}, {plain, "q1_0", true}, {plain, "q4_0", false}, {halves(t, "lutra-tiny-s"), "tq2_0", false}} {
		out := mustLutra(t, "quantize", c.from, filepath.Join(dir, "out.gguf"), c.to)
		if strings.Contains(out, "expect nonsense") != c.warned {
			t.Errorf("%s to %s: warned %v\n%s", filepath.Base(c.from), c.to, !c.warned, out)
		}
	}
}

// endsAt cancels once something is written to it.
type endsAt struct {
	bytes.Buffer
	end context.CancelFunc
}

func (e *endsAt) Write(p []byte) (int, error) {
	e.end()
	return e.Buffer.Write(p)
}

func TestAnInterruptedQuantisationShowsTheTensorsSoFar(t *testing.T) {
	dir := t.TempDir()
	in, to := filepath.Join(dir, "in.gguf"), filepath.Join(dir, "out.gguf")
	if err := os.WriteFile(in, tinyModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errOut := &endsAt{end: cancel}
	cmd := Command(&out, errOut)
	cmd.SetArgs([]string{"quantize", "--allow-requantize", in, to, "Q8_0"})
	err := cmd.ExecuteContext(ctx)
	said := errOut.String()
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(said, "quantising (") || !strings.Contains(said, "tensors: "+to+" is not written\n") || !strings.Contains(out.String(), "\nQ8_0: ") {
		t.Errorf("%v, says %q and prints\n%s", err, said, &out)
	}
	if _, err := os.Stat(to); err == nil {
		t.Errorf("%s is there", to)
	}
}
