package models

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/load"
)

// slotBytes is the memory that an expert of a synthetic model has.
func slotBytes(t *testing.T, path string, rows, cols int) int64 {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := pool.New(1)
	defer p.Close()
	l := load.NewTensors(f, new(load.Report), load.Options{Pool: p})
	w := f.Tensor("blk.0.ffn_gate_exps.weight")
	one := cpu.RoundUp(l.MostBytes(w, rows, cols), cpu.CacheLine)
	return int64(2*one + cpu.RoundUp(l.MostBytes(w, cols, rows), cpu.CacheLine))
}

func TestAnswersAreTheSameWhicheverExpertsAreInMemory(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	for i, blocks := range []gguf.Type{gguf.TQ2_0, gguf.Q4_K, gguf.F16} {
		t.Run(blocks.String(), func(t *testing.T) {
			path := synthetized(t, manyExperts, blocks)
			convs := conversations(t, path, kv.F16, 9)
			slot := slotBytes(t, path, manyExperts.Experts.FFN, manyExperts.Hidden)
			for _, slots := range []int64{5, 1, 40}[:sweep.Of(t, max(1, 2-i), 3)] { // of one for all types
				togetherWith(t, path, kv.F16, convs, false, LoadOptions{ExpertMemory: slots*slot + slot/2})
				for _, c := range convs {
					c.done, c.seq = 0, nil
				}
			}
		})
	}
}

func TestExpertsOfEveryFormComeFromTheFile(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	tokens := transformersTokens()
	for _, name := range transformersMixtures {
		path := "testdata/transformers/" + name + ".gguf"
		want := newRunner(t, openModel(t, path, LoadOptions{}), kv.F16).feed(len(tokens), tokens...)
		m := openModel(t, path, LoadOptions{ExpertMemory: 7 << 10})
		if m.(*executor).graph.store == nil {
			t.Fatalf("%s: all experts are in memory", name)
		}
		compareBits(t, name, newRunner(t, m, kv.F16).feed(len(tokens), tokens...), want)
	}
}

func TestExpertsWithTensorsOfTheirOwnComeFromTheFile(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	tiny := &tinyMixture{arch: "llama", experts: 5, used: 2, older: true}
	f := tiny.file(t)
	var logits [2][]float32
	for i, memory := range []int64{0, 60 << 10} {
		m, err := loadModel(f, LoadOptions{Pool: p, ExpertMemory: memory})
		if err != nil {
			t.Fatal(err)
		}
		defer m.close()
		if stored := m.graph.store != nil; stored != (memory > 0) {
			t.Fatalf("memory of %d: experts stay in the file: %t", memory, stored)
		}
		logits[i] = slices.Clone(newRunner(t, m, kv.F16).feed(20, transformersTokens()[:20]...))
	}
	compareBits(t, "experts with tensors of their own", logits[1], logits[0])
}

func TestTheStoreCountsWhatIsFoundAndWhatIsRead(t *testing.T) {
	sweep.NoEmulator(t)
	p := pool.New(2)
	defer p.Close()
	path := synthetized(t, manyExperts, gguf.Q4_K)
	slot := slotBytes(t, path, manyExperts.Experts.FFN, manyExperts.Hidden)
	b, err := Load(path, LoadOptions{Pool: p, ExpertMemory: 30 * slot})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if st, ok := b.Experts(); !ok || st != (ExpertStats{Room: 30, Experts: 48, Bytes: 30 * slot}) {
		t.Errorf("before the first step: %+v, %t", st, ok)
	}
	r := newRunner(t, b.Model, kv.F16)
	var wait sync.WaitGroup
	stop := make(chan struct{})
	wait.Go(func() { // as a scrape does
		for {
			select {
			case <-stop:
				return
			default:
				b.Experts()
			}
		}
	})
	r.feed(1, 7)
	st, _ := b.Experts()
	raw := int64(3 * manyExperts.Hidden * manyExperts.Experts.FFN / 256 * gguf.Q4_K.BlockBytes())
	if want := int64(manyExperts.Layers * manyExperts.Experts.Used); st.Misses != want || st.Held != want || st.Hits != 0 || st.Read != want*raw {
		t.Errorf("after a token: %+v, want %d experts read, of %d bytes", st, want, raw)
	}
	for range 20 {
		r.feed(1, 7)
	}
	close(stop)
	wait.Wait()
	if st, _ = b.Experts(); st.Hits == 0 || st.Held > st.Room || st.Read != st.Misses*raw {
		t.Errorf("after more: %+v", st)
	}
	all, err := Load(path, LoadOptions{Pool: p, ExpertMemory: 48 * slot})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if st, ok := all.Experts(); ok {
		t.Errorf("experts that fit are in a store: %+v", st)
	}
	if got, want := b.Model.Config().Params, all.Model.Config().Params; got != want {
		t.Errorf("the model has %d weights, want %d", got, want)
	}
}

func TestAFileChangedBeneathItsExpertsFailsTheModelForGood(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"truncated": func(t *testing.T, path string) {
			if err := os.Truncate(path, 4096); err != nil {
				t.Fatal(err)
			}
		},
		"overwritten": overwrite,
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/transformers/mixtral.gguf")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, openModel(t, path, LoadOptions{ExpertMemory: 20 << 10}), kv.F16)
			r.feed(1, 3, 4, 5)
			change(t, path)
			for range 2 {
				if err := r.seq.Grow(3); err != nil {
					t.Fatal(err)
				}
				r.b.Reset()
				r.b.Add(r.seq, r.seq.Len()-3, 1, 6, 60, 33)
				if err := r.m.Forward(&r.b, r.kv); !errors.Is(err, gguf.ErrChanged) {
					t.Errorf("Forward = %v, want gguf.ErrChanged", err)
				}
			}
		})
	}
}

func TestAnExpertThatHoldsNoNumberFailsTheStepThatWantsIt(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	tiny := &tinyMixture{arch: "qwen3moe", halves: true, headNorm: true, experts: 6, used: 6}
	f := tiny.file(t)
	list := slices.Clone(f.Tensors)
	bad := &list[slices.IndexFunc(list, func(t gguf.Tensor) bool { return t.Name == "blk.1.ffn_down_exps.weight" })]
	bad.Data = slices.Clone(bad.Data)
	copy(bad.Data[len(bad.Data)-4:], []byte{0, 0, 0xc0, 0x7f})
	m, err := loadModel(tiny.parse(t, list), LoadOptions{Pool: p, ExpertMemory: 40 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	r := newRunner(t, m, kv.F16)
	if err := r.seq.Grow(1); err != nil {
		t.Fatal(err)
	}
	r.b.Add(r.seq, 0, 1, 5)
	for range 2 {
		if err := m.Forward(&r.b, r.kv); err == nil || !strings.Contains(err.Error(), "expert 5 of layer 1: tensor blk.1.ffn_down_exps.weight: row") {
			t.Errorf("Forward = %v, want the tensor's name", err)
		}
	}
}

func TestMemoryThatHoldsNoExpertIsRefused(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for want, opt := range map[string]LoadOptions{
		"does not hold one of":     {Pool: p, ExpertMemory: 1000},
		"multiplied by the CPU al": {Pool: p, ExpertMemory: 20 << 10, Backend: &countingBackend{CPU: kernels.NewCPU(p), count: nil}},
	} {
		tiny := &tinyMixture{arch: "qwen3moe", halves: true, headNorm: true, experts: 6, used: 2}
		if _, err := loadModel(tiny.file(t), opt); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("loading gave %v, want an error that says %q", err, want)
		}
	}
}
