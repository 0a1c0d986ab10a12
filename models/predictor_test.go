package models

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// predicts is recurrentShape with a layer that predicts; mixtures: with mixtures of experts.
func predicts(mixtures bool) synthetic.Shape {
	s := recurrentShape
	if s.Predicts = true; mixtures {
		s.Arch, s.Experts = synthetic.Qwen35MoE, synthetic.Experts{Count: 4, Used: 2, FFN: 32, Shared: 32}
	}
	return s
}

// bundleOf loads a file as a program does.
func bundleOf(t *testing.T, path string, opt LoadOptions) *Bundle {
	t.Helper()
	opt.Pool = pool.New(2)
	t.Cleanup(opt.Pool.Close)
	b, err := Load(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestAPredictorIsALayerBehindAJoinedEmbedding holds the predictor against a model of one layer: its embeddings are what
// the predictor makes of each token and one hidden state.
func TestAPredictorIsALayerBehindAJoinedEmbedding(t *testing.T) {
	for _, mixtures := range []bool{false, true} {
		path := recurrentModel(t, predicts(mixtures), gguf.F32)
		f := parsed(t, path)
		numbers := func(name string) []float32 {
			x := f.Tensor(name)
			out := make([]float32, x.Len())
			if err := x.Dequantize(out, 0); err != nil {
				t.Fatal(err)
			}
			return out
		}
		width := 64
		state, tokens := make([]float32, width), []int32{5, 7, 5, 200, 11}
		for i := range state {
			state[i] = float32(i%7) - 2.5
		}
		var scale [3]float32 // no norm is all ones
		for i := range scale {
			scale[i] = 1 + float32(i+1)/4
		}
		own := map[string]float32{"blk.6.nextn.enorm.weight": scale[0], "blk.6.nextn.hnorm.weight": scale[1], "blk.6.nextn.shared_head_norm.weight": scale[2]}
		for i := range f.Tensors {
			if x, ok := own[f.Tensors[i].Name]; ok {
				f.Tensors[i] = constant(f.Tensors[i].Name, width, x)
			}
		}
		p := pool.New(2)
		defer p.Close()
		e, err := loadModel(f, LoadOptions{Pool: p, Exact: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.close()

		joined, table, h := numbers("blk.6.nextn.eh_proj.weight"), numbers("token_embd.weight"), make([]float32, width)
		vector.RMSNorm(h, state, slices.Repeat([]float32{scale[1]}, width), 1e-5)
		pair := append(make([]float32, width), h...)
		rows := make([]float32, len(table))
		for id := range len(table) / width {
			vector.RMSNorm(pair[:width], table[id*width:][:width], slices.Repeat([]float32{scale[0]}, width), 1e-5)
			for k := range width {
				rows[id*width+k] = vector.Dot(joined[k*2*width:][:2*width], pair)
			}
		}
		md := maps.Clone(f.Metadata)
		arch := string(predicts(mixtures).Arch)
		md[arch+".block_count"], md[arch+".full_attention_interval"] = uint32(1), uint32(1)
		delete(md, arch+".nextn_predict_layers")
		one := []gguf.Tensor{floats("token_embd.weight", rows, width, len(rows)/width), floats("output.weight", table, width, len(rows)/width), constant("output_norm.weight", width, scale[2])}
		for _, x := range f.Tensors {
			if name, ok := strings.CutPrefix(x.Name, "blk.6."); ok && !strings.HasPrefix(name, "nextn.") {
				x.Name = "blk.0." + name
				one = append(one, x)
			}
		}
		var b strings.Builder
		if err := gguf.Write(&b, md, one); err != nil {
			t.Fatal(err)
		}
		g, err := gguf.Parse([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		m, err := loadModel(g, LoadOptions{Pool: p, Exact: true})
		if err != nil {
			t.Fatal(err)
		}
		defer m.close()
		want := newRunner(t, m, kv.F32).feed(len(tokens), tokens...)
		got := newRunner(t, e.ahead, kv.F32)
		got.b.Before = slices.Repeat(state, len(tokens))
		if err := got.seq.Grow(len(tokens)); err != nil {
			t.Fatal(err)
		}
		got.b.Add(got.seq, 0, len(tokens), tokens...)
		if err := e.ahead.Forward(&got.b, got.kv); err != nil {
			t.Fatal(err)
		}
		if d := nmse(got.b.Logits, want); d > 1e-9 {
			t.Errorf("with mixtures %t the predictor's logits differ by %v", mixtures, d)
		}
	}
}

// constant is a tensor of n equal numbers, floats one of a shape.
func constant(name string, n int, x float32) gguf.Tensor {
	return floats(name, slices.Repeat([]float32{x}, n), n)
}

func floats(name string, x []float32, dims ...int) gguf.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return gguf.Tensor{Name: name, Type: gguf.F32, Dims: dims, Data: data}
}

// parsed reads a file into memory.
func parsed(t *testing.T, path string) *gguf.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStatesAreWhatTheHeadReads(t *testing.T) {
	b := bundleOf(t, recurrentModel(t, predicts(false), gguf.F16), LoadOptions{})
	tokens := tokensOf(20, 3)
	want := slices.Clone(newRunner(t, b.Model, kv.F16).feed(1, tokens...))
	r := newRunner(t, b.Model, kv.F16)
	if err := r.seq.Grow(len(tokens)); err != nil {
		t.Fatal(err)
	}
	r.b.Add(r.seq, 0, 1, tokens...)
	r.b.KeepStates = true
	if err := b.Model.Forward(&r.b, r.kv); err != nil {
		t.Fatal(err)
	}
	compareBits(t, "logits where states are kept", r.b.Logits, want)
	if width := b.Model.Config().Hidden; len(r.b.States) != len(tokens)*width || slices.Max(r.b.States[:width]) == 0 {
		t.Errorf("%d numbers of states", len(r.b.States))
	}
}

// TestOfSeveralPredictorsTheFirstIsRead holds a file with two against the file with the first alone.
func TestOfSeveralPredictorsTheFirstIsRead(t *testing.T) {
	path := recurrentModel(t, predicts(false), gguf.F16)
	f := parsed(t, path)
	for _, x := range f.Tensors {
		if name, ok := strings.CutPrefix(x.Name, "blk.6."); ok {
			x.Name = "blk.7." + name
			if strings.HasPrefix(name, "nextn.") && len(x.Dims) == 1 {
				x = constant(x.Name, x.Dims[0], 3)
			}
			f.Tensors = append(f.Tensors, x)
		}
	}
	md, arch := maps.Clone(f.Metadata), string(predicts(false).Arch)
	md[arch+".block_count"], md[arch+".nextn_predict_layers"] = uint32(8), uint32(2)
	both := filepath.Join(t.TempDir(), "both.gguf")
	w, err := os.Create(both)
	if err == nil {
		err = errors.Join(gguf.Write(w, md, f.Tensors), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	logits := func(path string) (main, ahead []float32) {
		b := bundleOf(t, path, LoadOptions{})
		if b.Predictor == nil {
			t.Fatal("no predictor was loaded")
		}
		main = slices.Clone(newRunner(t, b.Model, kv.F16).feed(1, 5, 7, 11))
		r := newRunner(t, b.Predictor, kv.F16)
		if err := r.seq.Grow(3); err != nil {
			t.Fatal(err)
		}
		r.b.Add(r.seq, 0, 1, 5, 7, 11)
		r.b.Before = slices.Repeat([]float32{1, -1}, 3*b.Model.Config().Hidden/2)
		if err := b.Predictor.Forward(&r.b, r.kv); err != nil {
			t.Fatal(err)
		}
		return main, slices.Clone(r.b.Logits)
	}
	main, ahead := logits(both)
	wantMain, wantAhead := logits(path)
	compareBits(t, "the model's logits beside two predictors", main, wantMain)
	compareBits(t, "the first predictor's logits beside a second", ahead, wantAhead)
}

func TestAPredictorThatIsNotWholeIsLeftOut(t *testing.T) {
	path := recurrentModel(t, predicts(false), gguf.F16)
	if b := bundleOf(t, path, LoadOptions{}); b.Predictor == nil {
		t.Error("the predictor was left out")
	}
	for _, name := range predictorTensors {
		f := parsed(t, path)
		f.Tensors = slices.DeleteFunc(f.Tensors, func(x gguf.Tensor) bool { return x.Name == "blk.6."+name })
		var b strings.Builder
		if err := gguf.Write(&b, f.Metadata, f.Tensors); err != nil {
			t.Fatal(err)
		}
		g, err := gguf.Parse([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		p := pool.New(1)
		defer p.Close()
		m, err := loadModel(g, LoadOptions{Pool: p})
		if err != nil {
			t.Fatal(fmt.Errorf("without %s: %w", name, err))
		}
		if m.ahead != nil {
			t.Errorf("a predictor without %s was loaded", name)
		}
		m.close()
	}
}

func TestAPredictorGuessesTheFirstTokensOfALargeVocabulary(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	for _, c := range [][2]bool{{false, true}, {true, true}, {true, false}} {
		tied, exact := c[0], c[1]
		shape := predicts(false)
		shape.Vocab, shape.TiedEmbedding = 2*shortlist, tied
		path := recurrentModel(t, shape, gguf.F16)
		b := bundleOf(t, path, LoadOptions{Exact: exact})
		f := parsed(t, path)
		name := "output.weight"
		if tied {
			name = embeddingTensor
		}
		r := newRunner(t, b.Predictor, kv.F32)
		if err := r.seq.Grow(2); err != nil {
			t.Fatal(err)
		}
		r.b.Add(r.seq, 0, 1, 1, 2)
		r.b.Before, r.b.KeepStates = slices.Repeat([]float32{1, -1}, 64), true
		if err := b.Predictor.Forward(&r.b, r.kv); err != nil {
			t.Fatal(err)
		}
		if len(r.b.Logits) != shortlist {
			t.Fatalf("logits of %d tokens", len(r.b.Logits))
		}
		row := make([]float32, 64)
		for _, id := range []int{0, 7, shortlist - 1} {
			if err := f.Tensor(name).Dequantize(row, id*64); err != nil {
				t.Fatal(err)
			}
			most := 1e-3
			if state := r.b.States[64:]; !exact { // the head has 4 bits
				most = 0.05 * math.Sqrt(float64(vector.Dot(row, row)*vector.Dot(state, state)))
			}
			if want := vector.Dot(row, r.b.States[64:]); math.Abs(float64(r.b.Logits[id]-want)) > most {
				t.Errorf("the logit of token %d is %v, want %v", id, r.b.Logits[id], want)
			}
		}
	}
}

func TestAPredictorReadsAStateForEachRow(t *testing.T) {
	b := bundleOf(t, recurrentModel(t, predicts(false), gguf.F16), LoadOptions{})
	r := newRunner(t, b.Predictor, kv.F16)
	if err := r.seq.Grow(2); err != nil {
		t.Fatal(err)
	}
	r.b.Add(r.seq, 0, 1, 1, 2)
	r.b.Before = make([]float32, 64)
	if err := b.Predictor.Forward(&r.b, r.kv); !errors.Is(err, ErrBatch) {
		t.Errorf("two rows with one state: %v", err)
	}
}
