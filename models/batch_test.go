package models

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/ternary"
	"github.com/lutra-lm/lutra/models/kv"
)

// conversation is one sequence of the invariance test.
type conversation struct {
	tokens []int32
	want   [][]float32 // logits after each token, computed alone
	done   int
	seq    *kv.Sequence
}

// conversations makes n token sequences, many of which share a beginning, and
// computes each by itself, on one thread, in one go.
func conversations(t *testing.T, path string, kind kv.Type, n int) []*conversation {
	t.Helper()
	pool := pool.New(1)
	defer pool.Close()
	m := openModel(t, path, LoadOptions{Pool: pool})
	rng := rand.New(rand.NewPCG(1, 2))
	vocab, width := m.Config().Vocab, m.Config().Outputs
	convs := make([]*conversation, n)
	for i := range convs {
		c := &conversation{}
		if i > 0 && rng.IntN(3) > 0 {
			other := convs[rng.IntN(i)].tokens
			c.tokens = append(c.tokens, other[:rng.IntN(len(other)+1)]...)
		}
		length := 1 + rng.IntN(20)
		if i%8 == 0 {
			length += 100 // several chunks of keys, several tiles of rows
		}
		for range length {
			c.tokens = append(c.tokens, int32(rng.IntN(vocab)))
		}
		logits := newRunner(t, m, kind).feed(len(c.tokens), c.tokens...)
		for j := range c.tokens {
			c.want = append(c.want, append([]float32(nil), logits[j*width:(j+1)*width]...))
		}
		convs[i] = c
	}
	return convs
}

// together computes the conversations in batches. In every step a random choice of them takes a random number of tokens, in
// one batch on several threads, over one cache whose prefixes are shared.
//
// alone says whether workers take shards of the rows.
func together(t *testing.T, path string, kind kv.Type, convs []*conversation, alone bool) {
	t.Helper()
	togetherWith(t, path, kind, convs, alone, LoadOptions{})
}

// togetherWith is together for a model that is loaded with opt.
func togetherWith(t *testing.T, path string, kind kv.Type, convs []*conversation, alone bool, opt LoadOptions) {
	t.Helper()
	pool := pool.New(3)
	defer pool.Close()
	opt.Pool = pool
	m := openModel(t, path, opt)
	m.(*executor).alone = alone && m.Config().Experts == 0
	cache, err := kv.New(m.Config().KV(), kv.Options{Type: kind, BlockLen: 16, Blocks: 400, States: 100})
	if err != nil {
		t.Fatal(err)
	}
	width := m.Config().Outputs
	rng := rand.New(rand.NewPCG(3, 4))
	var b Batch
	for left := len(convs); left > 0; {
		b.Reset()
		var planned []*conversation
		for _, c := range convs {
			if c.done == len(c.tokens) || rng.IntN(4) == 0 {
				continue
			}
			if c.seq == nil {
				c.seq = cache.Open(c.tokens[:len(c.tokens)-1])
				c.done = c.seq.Len()
			}
			n := 1
			if rng.IntN(2) == 0 {
				n += rng.IntN(min(40, len(c.tokens)-c.done))
			}
			if err := c.seq.Grow(n); err != nil {
				t.Fatal(err)
			}
			b.Add(c.seq, c.done, rng.IntN(n+1), c.tokens[c.done:c.done+n]...)
			planned = append(planned, c)
		}
		if len(planned) == 0 {
			continue
		}
		if err := m.Forward(&b, cache); err != nil {
			t.Fatal(err)
		}
		row := 0
		for i, c := range planned {
			sp := &b.Spans[i]
			c.done += sp.End - sp.Start
			for j := c.done - sp.Out; j < c.done; j++ {
				compareBits(t, fmt.Sprintf("conversation of %d tokens, position %d", len(c.tokens), j), b.Logits[row*width:(row+1)*width], c.want[j])
				row++
			}
			c.seq.Seal(c.tokens[:c.done])
			if c.done == len(c.tokens) {
				c.seq.Release()
				left--
			}
		}
		if err := cache.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if cache.Stats().HitTokens == 0 {
		t.Error("no conversation started from the prefix cache")
	}
}

func compareBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: logit %d is %v, alone it was %v", what, i, got[i], want[i])
		}
	}
}

func TestABatchGivesEverySequenceTheBitsItGetsAlone(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*/model.gguf")
	if err != nil || len(paths) == 0 {
		t.Fatal("no reference models", err)
	}
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		kinds := kvTypes(openModel(t, path, LoadOptions{}), []kv.Type{kv.F16, kv.Int4, kv.Int8, int8AndInt4, kv.F32}[:sweep.Cases(2, 5)]...)
		if testing.Short() { // an emulator takes seconds for each
			switch name {
			case "llama-tq2_0":
			case "gemma2", "llama-q4_0": // windows and caps, and codes of more bits
				kinds = kinds[:1]
			default: // other forms of the layer, not other kernels
				continue
			}
		}
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%s/%v", name, kind), func(t *testing.T) {
				n := sweep.Of(t, 9, 32) // two long ones and enough short ones to share beginnings
				if testing.Short() {
					n = 9
				}
				convs := conversations(t, path, kind, n)
				together(t, path, kind, convs, true)
				if testing.Short() && (name != "llama-tq2_0" || kind != kv.F16) {
					return // who takes which rows changes no arithmetic
				}
				for _, c := range convs {
					c.done, c.seq = 0, nil
				}
				together(t, path, kind, convs, false)
			})
		}
	}
}

// The choice of kernel is fixed when a process starts.
func TestEveryKernelGivesABatchTheBitsOfOneByOne(t *testing.T) {
	sweep.Full(t)
	if os.Getenv("LUTRA_KERNEL") != "" || testing.Short() {
		t.Skip("runs the tests once more for every kernel")
	}
	last := ""
	for _, name := range ternary.Implementations() {
		t.Run(name, func(t *testing.T) {
			models := "tq2_0|q4_0"
			isa, _, _ := strings.Cut(name, ":")
			if isa == last && !sweep.All(t) {
				models = "tq2_0" // the other's kernel is of the instruction set alone
			}
			last = isa
			cmd := exec.Command(os.Args[0], "-test.run=^TestABatchGives.*$/^llama-("+models+")$/^f16$", "-test.short")
			cmd.Env = append(os.Environ(), "LUTRA_KERNEL="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAWarmStepAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	for _, kind := range []kv.Type{kv.F16, kv.Int8, kv.Int4, int8AndInt4} {
		m := openModel(t, "testdata/golden/llama-tq2_0/model.gguf", oneThread(t))
		cache, err := kv.New(m.Config().KV(), kv.Options{Type: kind, BlockLen: 16, Blocks: 400})
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		var seqs []*kv.Sequence
		for i := range 9 {
			s := cache.Open(nil)
			if err := s.Grow(40); err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, s)
			if i == 0 {
				b.Add(s, 0, 1, make([]int32, 40)...)
			} else {
				b.Add(s, 0, 1, 7)
			}
		}
		step := func() {
			if err := m.Forward(&b, cache); err != nil {
				t.Fatal(err)
			}
		}
		step()
		if n := testing.AllocsPerRun(20, step); n != 0 {
			t.Errorf("KV %v: a step allocates %v times", kind, n)
		}
		_ = seqs
	}
}

func TestForwardRefusesABatchItCannotCompute(t *testing.T) {
	m := openModel(t, "testdata/golden/llama3-rope-tied/model.gguf", LoadOptions{})
	cfg := m.Config()
	newCache := func() *kv.Cache {
		cache, err := kv.New(cfg.KV(), kv.Options{BlockLen: 16, Blocks: 1 + cfg.Context/16})
		if err != nil {
			t.Fatal(err)
		}
		return cache
	}
	cache := newCache()
	s := cache.Open(nil)
	if err := s.Grow(cfg.Context + 1); err != nil {
		t.Fatal(err)
	}
	foreign := newCache().Open(nil)
	if err := foreign.Grow(4); err != nil {
		t.Fatal(err)
	}
	shared := newCache()
	for what, b := range map[string]Batch{
		"a token beyond the vocabulary":  {Tokens: []int32{int32(cfg.Vocab)}, Positions: []int32{0}, Spans: []Span{{0, 1, s, 1, nil}}},
		"a negative token":               {Tokens: []int32{-1}, Positions: []int32{0}, Spans: []Span{{0, 1, s, 1, nil}}},
		"a position beyond the context":  {Tokens: []int32{1}, Positions: []int32{int32(cfg.Context)}, Spans: []Span{{0, 1, s, 1, nil}}},
		"a negative position":            {Tokens: []int32{1}, Positions: []int32{-1}, Spans: []Span{{0, 1, s, 1, nil}}},
		"a position that was not grown":  {Tokens: []int32{1}, Positions: []int32{4}, Spans: []Span{{0, 1, foreign, 1, nil}}},
		"positions with a gap":           {Tokens: []int32{1, 1}, Positions: []int32{0, 2}, Spans: []Span{{0, 2, s, 1, nil}}},
		"a sequence of another cache":    {Tokens: []int32{1}, Positions: []int32{0}, Spans: []Span{{0, 1, foreign, 1, nil}}},
		"a span without a sequence":      {Tokens: []int32{1}, Positions: []int32{0}, Spans: []Span{{0, 1, nil, 1, nil}}},
		"more outputs than tokens":       {Tokens: []int32{1}, Positions: []int32{0}, Spans: []Span{{0, 1, s, 2, nil}}},
		"a span beyond the tokens":       {Tokens: []int32{1}, Positions: []int32{0}, Spans: []Span{{0, 2, s, 1, nil}}},
		"an empty span":                  {Tokens: []int32{1}, Positions: []int32{0}, Spans: []Span{{0, 0, s, 0, nil}, {0, 1, s, 1, nil}}},
		"a token outside all spans":      {Tokens: []int32{1, 1}, Positions: []int32{0, 1}, Spans: []Span{{0, 1, s, 1, nil}}},
		"positions that are not as many": {Tokens: []int32{1}, Spans: []Span{{0, 1, s, 1, nil}}},
	} {
		if err := m.Forward(&b, cache); !errors.Is(err, ErrBatch) {
			t.Errorf("Forward with %s: %v", what, err)
		}
	}
	parent := shared.Open(nil)
	if err := parent.Grow(3); err != nil {
		t.Fatal(err)
	}
	parent.Fork()
	b := Batch{Tokens: []int32{1}, Positions: []int32{2}, Spans: []Span{{0, 1, parent, 1, nil}}}
	if err := m.Forward(&b, shared); !errors.Is(err, ErrBatch) {
		t.Errorf("Forward into a block that a fork shares: %v", err)
	}
}

func TestManyRowsOfAModelThatIsNotInACoresCachesAreSeveralShardsAWorker(t *testing.T) {
	for _, c := range []struct{ n, workers, count int }{
		{1, 2, 1}, {64, 1, 1}, {128, 1, 2}, {129, 2, 1}, {255, 2, 1}, {256, 2, 4}, {383, 2, 4}, {384, 2, 6}, {512, 64, 1},
	} {
		if count, rows := divide(c.n, c.workers, false); count != c.count || rows != 0 {
			t.Errorf("divide(%d rows, %d workers) = %d shards of %d, want %d equal ones", c.n, c.workers, count, rows, c.count)
		}
	}
}

func TestManyRowsAreDividedIntoWholeTiles(t *testing.T) {
	for _, c := range []struct{ n, workers, count, rows int }{
		{1, 2, 1, 0}, {2, 2, 2, 0}, {33, 2, 2, 0}, {64, 2, 2, 0}, {65, 2, 5, tileRows}, {96, 2, 6, tileRows}, {500, 2, 32, tileRows},
		{32, 1, 1, 0}, {33, 1, 3, tileRows}, {5, 8, 5, 0}, {256, 8, 8, 0}, {257, 8, 17, tileRows},
	} {
		if count, rows := divide(c.n, c.workers, true); count != c.count || rows != c.rows {
			t.Errorf("divide(%d rows, %d workers) = %d shards of %d, want %d of %d", c.n, c.workers, count, rows, c.count, c.rows)
		}
	}
}
