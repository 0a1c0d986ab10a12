package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// tinyShape is a model shape whose cache is cheap to compare, recurrentShape one
// with a state, of which there are few, statesAlone one with nothing else. wideShape
// and wideRecurrent are the same for 4 bits.
var (
	tinyShape      = Shape{Layers: 2, Heads: 2, HeadDim: 3}
	recurrentShape = Shape{Layers: 2, Heads: 2, HeadDim: 3, State: 5}
	statesAlone    = Shape{State: 5}
	wideShape      = Shape{Layers: 2, Heads: 2, HeadDim: 32}
	wideRecurrent  = Shape{Layers: 2, Heads: 2, HeadDim: 32, State: 5}
)

// history drives a small cache and a naive model of it: every sequence's
// tokens in a slice of its own.
type history struct {
	t        *testing.T
	c        *Cache
	seqs     []*Sequence
	toks     [][]int32
	told     told
	versions map[uint64][]float32 // numbers of states
}

func newHistory(t *testing.T, kind Type, mask uint64) *history {
	t.Helper()
	return newHistoryOf(t, tinyShape, kind, mask, 0, 0)
}

func newHistoryOf(t *testing.T, shape Shape, kind Type, mask uint64, states, residuals int) *history {
	t.Helper()
	c, err := New(shape, Options{Type: kind, BlockLen: 4, Blocks: 24, States: states, Residuals: residuals})
	if err != nil {
		t.Fatal(err)
	}
	c.index.mask = mask
	h := &history{t: t, c: c, told: told{}, versions: map[uint64][]float32{}}
	c.Observe(h.told)
	return h
}

// mark is the value stored for a position: like real keys it depends on all
// tokens so far.
func mark(tokens []int32, layer, head int) uint16 {
	h := uint32(2166136261)
	for _, t := range tokens {
		h = (h ^ uint32(t+1)) * 16777619
	}
	return uint16(h>>7) ^ uint16(layer*7+head*3)
}

// put and at write and read one number of a position, in the cache's format.
func (h *history) put(s *Sequence, pos, layer, head int, v uint16) {
	b := s.blocks[pos/h.c.opt.BlockLen]
	if !h.c.writable(b) {
		h.t.Fatalf("position %d was grown into block %d, which is shared or indexed", pos, b)
	}
	l, d := &h.c.layers[layer], h.c.shape.HeadDim
	key, place, value := h.numbers(b, pos, head)
	if h.c.Residuals() > 0 {
		own := h.c.Own(layer, h.c.Residual(b))
		j := own.FirstVector(0, head) + pos%h.c.opt.BlockLen
		own.keys.scale[j], own.values.scale[j], own.values.int8[j*d] = float32(v), float32(v), int8(v)
	}
	switch h.c.opt.Type {
	case F16:
		l.keys.f16[place], l.values.f16[(value+1)*d-1] = v, v
	case Int8:
		l.keys.int8[place], l.keys.scale[key] = int8(v), float32(v)
		l.values.int8[value*d], l.values.scale[value] = int8(v), float32(v)
	case Int4:
		group, in := key/8*8, key%8
		l.keys.int4[group*d/2+((d/8-1)*8+in)*4+3], l.keys.scale4[group*d/32+in] = byte(v), v
		l.values.int4[value*d/2], l.values.scale4[(value+1)*d/32-1] = byte(v), v
	case F32:
		l.keys.f32[key*d], l.values.f32[(value+1)*d-1] = float32(v), float32(v)
	}
}

// numbers returns the numbers of a position's key, of its last interleaved element, and of its value.
func (h *history) numbers(b int32, pos, head int) (key, place, value int) {
	row := pos % h.c.opt.BlockLen
	first := h.c.Layer(0).FirstVector(b, head)
	return first + row, (first+row/8*8)*h.c.shape.HeadDim + (h.c.shape.HeadDim-1)*8 + row%8, first + row
}

func (h *history) at(s *Sequence, pos, layer, head int) (k, v uint16) {
	b := s.blocks[pos/h.c.opt.BlockLen]
	l, d := &h.c.layers[layer], h.c.shape.HeadDim
	key, place, value := h.numbers(b, pos, head)
	switch h.c.opt.Type {
	case F16:
		return l.keys.f16[place], l.values.f16[(value+1)*d-1]
	case Int8:
		return uint16(l.keys.scale[key]), uint16(l.values.scale[value])
	case Int4:
		group, in := key/8*8, key%8
		code, v := l.keys.int4[group*d/2+((d/8-1)*8+in)*4+3], l.values.scale4[(value+1)*d/32-1]
		return l.keys.scale4[group*d/32+in]&^0xff | uint16(code), v&^0xff | uint16(l.values.int4[value*d/2])
	default:
		return uint16(l.keys.f32[key*d]), uint16(l.values.f32[(value+1)*d-1])
	}
}

// own reads the number of a position in 8 bits.
func (h *history) own(s *Sequence, pos, layer, head int) (k, v uint16) {
	own := h.c.Own(layer, h.c.Residual(s.blocks[pos/h.c.opt.BlockLen]))
	j := own.FirstVector(0, head) + pos%h.c.opt.BlockLen
	k, v = uint16(own.keys.scale[j]), uint16(own.values.scale[j])
	if code := own.values.int8[j*h.c.shape.HeadDim]; code != int8(v) {
		h.t.Fatalf("position %d has code %d in 8 bits, want %d", pos, code, int8(v))
	}
	return k, v
}

// grow adds tokens and computes them.
func (h *history) grow(i int, tokens []int32) { h.growAhead(i, tokens, 0) }

// guess does so with tokens of which the last are guesses, and takes some of these back.
func (h *history) guess(i int, tokens []int32, guesses, wrong int) {
	s, before := h.seqs[i], len(h.toks[i])
	if guesses >= len(tokens) {
		return
	}
	if h.growAhead(i, tokens, guesses); len(h.toks[i]) <= before {
		return
	}
	keep := len(h.toks[i]) - min(wrong, guesses)
	if h.c.shape.State > 0 && keep < len(h.toks[i]) {
		state, saved, from := s.Undo(keep)
		want := make([]float32, len(saved))
		if fillState(want, h.toks[i][:from]); from != before+len(tokens)-guesses || !slices.Equal(saved, want) {
			h.t.Fatalf("of %d guesses after %d tokens Undo gives the state of %d: %v, want %v", guesses, before+len(tokens)-guesses, from, saved, want)
		}
		fillState(state, h.toks[i][:keep])
	}
	if s.Truncate(keep); s.Len() != keep {
		h.t.Fatalf("Truncate(%d) after Undo left %d", keep, s.Len())
	}
	h.toks[i] = h.toks[i][:keep]
}

// growAhead adds tokens, of which the last are guesses, and computes them.
func (h *history) growAhead(i int, tokens []int32, guesses int) {
	s, free, need := h.seqs[i], h.c.Free(), h.seqs[i].Need(len(tokens))
	residuals := h.c.FreeResiduals()
	room := need <= free && (h.c.Residuals() == 0 || need <= residuals) && (len(tokens) == 0 || s.NeedState() <= h.c.FreeStates())
	before := slices.Clone(s.blocks)
	err := s.Grow(len(tokens))
	if (err != nil) == room || err != nil && !errors.Is(err, ErrNoBlocks) {
		h.t.Fatalf("Grow(%d) needing %d of %d blocks: %v", len(tokens), need, free, err)
	}
	if err != nil {
		if !slices.Equal(before, s.blocks) || h.c.Free() != free || h.c.FreeResiduals() != residuals {
			h.t.Fatal("a failed Grow changed the sequence")
		}
		return
	}
	if guess := h.c.shape.State == 0 || guesses == 0 || h.c.FreeStates() > 0; (s.Guess(guesses) == nil) != guess {
		h.t.Fatalf("Guess(%d) with %d states free", guesses, h.c.FreeStates())
	} else if !guess {
		s.Truncate(len(h.toks[i]))
		h.toks[i] = h.toks[i][:s.Len()]
		return
	}
	h.advance(i, tokens)
	for _, t := range tokens {
		h.toks[i] = append(h.toks[i], t)
		for layer := range h.c.shape.Layers {
			for head := range tinyShape.Heads {
				h.put(s, len(h.toks[i])-1, layer, head, mark(h.toks[i], layer, head))
			}
		}
	}
}

func (h *history) open(prompt []int32) {
	s := h.c.Open(prompt)
	if s.Len() > len(prompt) {
		h.t.Fatalf("Open of %d tokens found %d", len(prompt), s.Len())
	}
	h.seqs = append(h.seqs, s)
	h.toks = append(h.toks, slices.Clone(prompt[:s.Len()]))
}

func (h *history) fork(i int) {
	h.seqs = append(h.seqs, h.seqs[i].Fork())
	h.toks = append(h.toks, slices.Clone(h.toks[i]))
}

func (h *history) release(i int) {
	h.seqs[i].Release()
	h.seqs = slices.Delete(h.seqs, i, i+1)
	h.toks = slices.Delete(h.toks, i, i+1)
}

// verify compares everything readable with the naive model.
func (h *history) verify() {
	h.t.Helper()
	if err := h.c.Check(h.seqs...); err != nil {
		h.t.Fatal(err)
	}
	h.told.verify(h.t, h.c)
	held := map[int32]bool{}
	for i, s := range h.seqs {
		if s.Len() != len(h.toks[i]) {
			h.t.Fatalf("sequence %d has %d positions, want %d", i, s.Len(), len(h.toks[i]))
		}
		h.checkState(i)
		for _, b := range s.blocks {
			held[b] = true
		}
		for pos := range h.toks[i] {
			for layer := range h.c.shape.Layers {
				for head := range tinyShape.Heads {
					want := mark(h.toks[i][:pos+1], layer, head)
					if k, v := h.at(s, pos, layer, head); k != want || v != want {
						h.t.Fatalf("sequence %d position %d layer %d head %d holds %d, %d, want %d", i, pos, layer, head, k, v, want)
					}
					if h.c.Residual(s.blocks[pos/h.c.opt.BlockLen]) == NoResidual {
						continue
					}
					if k, v := h.own(s, pos, layer, head); k != want || v != want {
						h.t.Fatalf("sequence %d position %d layer %d head %d holds %d, %d in 8 bits, want %d", i, pos, layer, head, k, v, want)
					}
				}
			}
		}
	}
	if h.c.Free()+len(held) != h.c.Blocks() {
		h.t.Fatalf("%d free + %d held blocks, want %d", h.c.Free(), len(held), h.c.Blocks())
	}
}

// play runs a history in which each operation is three bytes: what, whom, how many.
func (h *history) play(ops []byte) {
	for len(ops) >= 3 {
		what, who, n := ops[0]%11, int(ops[1]), int(ops[2])
		ops = ops[3:]
		// A two-letter alphabet makes equal prefixes common.
		tokens := make([]int32, n%11)
		for i := range tokens {
			tokens[i] = int32(n >> (i % 8) & 1)
		}
		if len(h.seqs) == 0 {
			what = 0
		} else {
			who %= len(h.seqs)
		}
		switch what {
		case 0:
			prompt := slices.Clone(tokens)
			if len(h.toks) > 0 { // often a known prefix
				known := h.toks[who%len(h.toks)]
				prompt = append(slices.Clone(known[:min(len(known), n%23)]), tokens...)
			}
			h.open(prompt)
		case 1, 2, 3:
			h.seqs[who].Want(len(h.toks[who]) + n%29)
			h.grow(who, tokens)
		case 4:
			h.seqs[who].Seal(h.toks[who])
		case 5:
			if len(h.seqs) < 12 {
				h.fork(who)
			}
		case 6:
			keep := n % (len(h.toks[who]) + 1)
			least := keep
			if b := keep / 4; h.c.Residuals() > 0 && keep < len(h.toks[who]) && (!h.c.writable(h.seqs[who].blocks[b]) || h.c.Residual(h.seqs[who].blocks[b]) == NoResidual) {
				least = b * 4
			}
			h.seqs[who].Truncate(keep)
			if left := h.seqs[who].Len(); left > keep || left != least && h.c.shape.State == 0 {
				h.t.Fatalf("Truncate(%d) of %d left %d", keep, len(h.toks[who]), left)
			}
			h.toks[who] = h.toks[who][:h.seqs[who].Len()]
		case 7:
			h.release(who)
		case 8: // like an equal or any other one
			as := n % len(h.seqs)
			h.seqs[who].Become(h.seqs[as])
			h.toks[who] = slices.Clone(h.toks[as])
		case 9:
			h.guess(who, tokens, n%7, n/7%7)
		case 10:
			h.seqs[who].Settle()
		}
		h.verify()
	}
}

func TestRandomHistoriesAgreeWithNaiveCopies(t *testing.T) {
	sweep.NoEmulator(t)
	for _, c := range []struct {
		kind              Type
		shape             Shape
		states, residuals int
	}{
		{F16, tinyShape, 0, 0}, {Int8, tinyShape, 0, 0}, {F32, tinyShape, 0, 0}, {Int4, wideShape, 0, 0}, {Int4, wideShape, 0, 5}, {Int4, wideRecurrent, 6, 9},
		{F16, recurrentShape, 1, 0}, {F16, recurrentShape, 4, 0}, {F16, recurrentShape, 40, 0}, {F16, statesAlone, 4, 0},
	} {
		for _, mask := range []uint64{^uint64(0), 1, 0} { // 0: all hashes collide
			t.Run(fmt.Sprintf("%v/layers=%d/states=%d/residuals=%d/mask=%x", c.kind, c.shape.Layers, c.states, c.residuals, mask), func(t *testing.T) {
				for seed := range uint64(sweep.Of(t, 10, 20)) {
					rng := rand.New(rand.NewPCG(seed, 7))
					ops := make([]byte, 3*300)
					for i := range ops {
						ops[i] = byte(rng.Uint32())
					}
					h := newHistoryOf(t, c.shape, c.kind, mask, c.states, c.residuals)
					h.play(ops)
					for len(h.seqs) > 0 {
						h.release(len(h.seqs) - 1)
					}
					h.verify()
					if h.c.Free() != h.c.Blocks() {
						t.Fatalf("seed %d: %d of %d blocks free at the end", seed, h.c.Free(), h.c.Blocks())
					}
					if h.c.FreeResiduals() != h.c.Residuals() {
						t.Fatalf("seed %d: %d of %d residuals free at the end", seed, h.c.FreeResiduals(), h.c.Residuals())
					}
					if h.c.FreeStates() != c.states {
						t.Fatalf("seed %d: %d of %d states free at the end", seed, h.c.FreeStates(), c.states)
					}
				}
			})
		}
	}
}

func FuzzHistoriesAgreeWithNaiveCopies(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 9, 4, 0, 0, 5, 0, 0, 1, 1, 3, 6, 0, 5, 7, 0, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, ops []byte) {
		newHistory(t, F16, ^uint64(0)).play(ops[:min(len(ops), 600)])
		newHistory(t, F16, 1).play(ops[:min(len(ops), 600)])
		newHistoryOf(t, wideShape, Int4, 1, 0, 6).play(ops[:min(len(ops), 600)])
		newHistoryOf(t, statesAlone, F16, 1, 3, 0).play(ops[:min(len(ops), 600)])
		newHistoryOf(t, recurrentShape, F16, 1, 3, 0).play(ops[:min(len(ops), 600)])
	})
}

func TestANewSequenceStartsWithTheLongestPrefixLeftBehind(t *testing.T) {
	h := newHistory(t, F16, ^uint64(0))
	prompt := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	h.open(prompt)
	h.grow(0, prompt)
	h.seqs[0].Seal(prompt)
	h.release(0)
	for _, c := range []struct {
		prompt []int32
		want   int
	}{
		{prompt, 8},
		{prompt[:8], 8},
		{prompt[:7], 4},
		{[]int32{1, 2, 3, 4, 5, 6, 7, 0, 0}, 4},
		{[]int32{0, 2, 3, 4, 5, 6, 7, 8}, 0},
		{nil, 0},
	} {
		s := h.c.Open(c.prompt)
		if s.Len() != c.want {
			t.Errorf("Open(%v) found %d tokens, want %d", c.prompt, s.Len(), c.want)
		}
		s.Release()
	}
	if st := h.c.Stats(); st.Queries != 7 || st.HitTokens != 24 || st.Cached != 2 || st.Free != st.Blocks {
		t.Errorf("Stats() = %+v", st)
	}
	h.verify()
}

func TestTheLeastRecentlyUsedPrefixIsEvictedFirst(t *testing.T) {
	h := newHistory(t, F16, ^uint64(0)) // 24 blocks of 4
	a, b := slices.Repeat([]int32{1}, 40), slices.Repeat([]int32{2}, 40)
	for _, p := range [][]int32{a, b} {
		h.open(p)
		h.grow(0, p)
		h.seqs[0].Seal(p)
		h.release(0)
	}
	h.c.Open(a).Release() // a is now the younger one
	h.open(slices.Repeat([]int32{3}, 40))
	h.grow(0, slices.Repeat([]int32{3}, 40)) // 10 blocks, of which 4 were free
	h.verify()
	if n := h.c.Open(a).Len(); n != 40 {
		t.Errorf("%d tokens of the recently used prefix left, want 40", n)
	}
	if n := h.c.Open(b).Len(); n != 16 {
		t.Errorf("%d tokens of the older prefix left, want 16: its end goes first", n)
	}
}

func TestAForkNeverChangesItsParent(t *testing.T) {
	h := newHistory(t, F16, ^uint64(0))
	h.open(nil)
	h.grow(0, []int32{1, 2, 3, 4, 5, 6})
	h.fork(0)
	if need := h.seqs[1].Need(1); need != 1 {
		t.Errorf("Need(1) of a fork with a partial last block = %d, want the copy", need)
	}
	h.grow(1, []int32{7})
	if need := h.seqs[0].Need(2); need != 0 {
		t.Errorf("Need(2) = %d after the fork took its copy, want 0", need)
	}
	h.grow(0, []int32{8, 8})
	h.verify()
	if st := h.c.Stats(); st.Copies != 1 {
		t.Errorf("%d copies, want 1", st.Copies)
	}
}

func TestGrowingInsideABlockAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	h := newHistory(t, F16, ^uint64(0))
	h.open(nil)
	s := h.seqs[0]
	if err := s.Grow(8); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		s.Truncate(1)
		if err := s.Grow(7); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Grow allocates %v times", n)
	}
}

func TestCacheSizesAreChecked(t *testing.T) {
	for _, opt := range []Options{{BlockLen: 0, Blocks: 1}, {BlockLen: 16}, {BlockLen: 1 << 40, Blocks: 1 << 30}, {Type: 9, BlockLen: 1, Blocks: 1}, {Type: Int4, BlockLen: 16, Blocks: 1}, {Type: TypeOf(F16, Int4), BlockLen: 16, Blocks: 1}} {
		if _, err := New(tinyShape, opt); err == nil {
			t.Errorf("New(%+v) succeeded", opt)
		}
	}
	if _, err := New(Shape{Layers: 1}, Options{BlockLen: 16, Blocks: 1}); err == nil {
		t.Error("a cache without heads was made")
	}
	const vectors = 18 * 2 * 4 * 16
	for kind, want := range map[Type]int64{F16: vectors * 256 * 2, Int8: vectors * (256 + 4), Int4: vectors * (128 + 16), TypeOf(Int8, Int4): vectors * (256 + 4 + 128 + 16) / 2, F32: vectors * 256 * 4} {
		want += 16*4 + noteBytes
		if got := BytesPerBlock(Shape{Layers: 18, Heads: 4, HeadDim: 256}, Options{Type: kind, BlockLen: 16}); got != want {
			t.Errorf("BytesPerBlock of %v = %d, want %d", kind, got, want)
		}
	}
}

func TestCachesOf4BitsHold1Point75TimesTheStreamsOf8(t *testing.T) {
	for name, shape := range map[string]Shape{
		"SmolLM2": {Layers: 30, Heads: 3, HeadDim: 64}, "Qwen2.5-Coder-1.5B": {Layers: 28, Heads: 2, HeadDim: 128}, "Gemma 3": {Layers: 18, Heads: 1, HeadDim: 256},
	} {
		streams := func(kind Type) int64 {
			const memory, context, block = 64 << 30, 2048, 32
			opt := Options{Type: kind, BlockLen: block}
			return memory / (context/block*BytesPerBlock(shape, opt) + BytesPerResidual(shape, opt))
		}
		if of4, of8 := streams(Int4), streams(Int8); float64(of4) < 1.75*float64(of8) {
			t.Errorf("%s: %d streams in 4 bits, %d in 8", name, of4, of8)
		}
	}
}

func TestTypesAreReadAsTheyAreWritten(t *testing.T) {
	for _, kind := range []Type{F16, Int8, F32, Int4, TypeOf(Int8, Int4), TypeOf(F16, Int8)} {
		if got, err := ParseType(kind.String()); err != nil || got != kind || TypeOf(got.Keys(), got.Values()) != kind {
			t.Errorf("ParseType(%v) = %v, %v", kind, got, err)
		}
	}
	for _, name := range []string{"", "/", "int8/", "/int4", "int8/int4/f16", "q4_0", "INT4"} {
		if got, err := ParseType(name); err == nil {
			t.Errorf("ParseType(%q) = %v", name, got)
		}
	}
}

func TestACacheForWhichThereIsNoMemoryIsAnError(t *testing.T) {
	c, err := New(Shape{Layers: 1, Heads: 1, HeadDim: 1 << 20}, Options{BlockLen: 1, Blocks: 1 << 20})
	if err == nil {
		c.Close()
		t.Skip("this system promises 32 TiB")
	}
	if !errors.Is(err, cpu.ErrMemory) || c != nil {
		t.Errorf("New of 32 TiB = %v, %v, want ErrMemory", c, err)
	}
}

func TestAColdCacheFindsNothing(t *testing.T) {
	for _, cold := range []bool{false, true} {
		c, err := New(tinyShape, Options{BlockLen: 2, Blocks: 8, Cold: cold})
		if err != nil {
			t.Fatal(err)
		}
		tokens := []int32{1, 2, 3, 4, 5}
		s := c.Open(tokens)
		if err := s.Grow(len(tokens)); err != nil {
			t.Fatal(err)
		}
		s.Seal(tokens)
		again := c.Open(tokens)
		if want := map[bool]int{false: 4, true: 0}[cold]; again.Len() != want {
			t.Errorf("cold %t: Open found %d tokens, want %d", cold, again.Len(), want)
		}
		if err := c.Check(s, again); err != nil {
			t.Error(err)
		}
	}
}
