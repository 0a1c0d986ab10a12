package kv

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// advance changes the recurrent state of a sequence as tokens after the others do.
func (h *history) advance(i int, tokens []int32) {
	if len(tokens) == 0 || h.c.shape.State == 0 {
		return
	}
	s, done := h.seqs[i], len(h.toks[i])
	if at, own := s.StateAt(); at != done || !own {
		h.t.Fatalf("the state of a grown sequence has seen %d tokens of %d, own %t", at, done, own)
	}
	h.checkState(i)
	all := slices.Concat(h.toks[i], tokens)
	state, marks := s.Advance(len(all), math.MaxInt)
	for k, m := range marks {
		switch guesses := s.Guesses(); {
		case guesses > 0 && (m.At != len(all)-guesses || len(marks) > 1):
			h.t.Fatalf("the state after %d tokens is to be kept, before %d guesses of %d", m.At, guesses, len(all))
		case guesses == 0 && (m.At <= done || m.At >= len(all) || m.At%h.c.opt.BlockLen != 0 || k > 0 && m.At <= marks[k-1].At):
			h.t.Fatalf("copies of the state %v are wanted, between %d and %d", marks, done, len(all))
		}
		fillState(m.State, all[:m.At])
	}
	fillState(state, all)
}

// fillState makes the state of tokens.
func fillState(state []float32, tokens []int32) {
	for i := range state {
		state[i] = 0
		if len(tokens) > 0 {
			state[i] = float32(mark(tokens, i, 1))
		}
	}
}

// checkState compares the recurrent state of a sequence with the tokens it has seen.
func (h *history) checkState(i int) {
	h.t.Helper()
	s, want := h.seqs[i], make([]float32, h.c.shape.State)
	if s.state == none {
		return
	}
	fillState(want, h.toks[i])
	got, version := h.c.states.of(s.state), s.StateVersion()
	if known := h.versions[version]; known != nil && !slices.Equal(got, known) {
		h.t.Fatalf("states of version %d differ: %v and %v", version, known, got)
	}
	h.versions[version] = slices.Clone(got)
	if !slices.Equal(got, want) {
		h.t.Fatalf("sequence %d of %d tokens has state %v, want %v", i, len(h.toks[i]), got, want)
	}
}

// tokensFrom is n tokens that count on from first.
func tokensFrom(first int32, n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = first + int32(i)
	}
	return t
}

func TestARecurrentPrefixIsFoundUpToItsLastCheckpoint(t *testing.T) {
	h := newHistoryOf(t, recurrentShape, F16, ^uint64(0), 8, 0)
	prompt := tokensFrom(1, 30)
	h.open(prompt)
	for _, n := range []int{10, 11, 9} { // checkpoints after 8, 20 and 28
		h.grow(0, prompt[len(h.toks[0]):len(h.toks[0])+n])
		h.seqs[0].Seal(h.toks[0])
		h.verify()
	}
	for tokens, want := range map[int]int{30: 28, 28: 28, 27: 20, 20: 20, 19: 8, 8: 8, 7: 0} {
		s := h.c.Open(prompt[:tokens])
		if s.Len() != want {
			t.Errorf("of %d tokens %d were found, want %d", tokens, s.Len(), want)
		}
		s.Release()
	}
	if got := h.c.Stats().Checkpoints; got != 3 {
		t.Errorf("%d checkpoints, want 3", got)
	}
	h.seqs[0].Truncate(25)
	if h.seqs[0].Len() != 20 {
		t.Errorf("cut to 25 tokens a sequence holds %d, want the 20 of the checkpoint", h.seqs[0].Len())
	}
}

func TestAStreamLeavesCheckpointsNowAndThen(t *testing.T) {
	c, err := New(recurrentShape, Options{BlockLen: 4, Blocks: 256, States: 100})
	if err != nil {
		t.Fatal(err)
	}
	s, tokens := c.Open(nil), tokensFrom(1, 3*checkpointTokens)
	for n := 1; n <= len(tokens); n++ {
		if err := s.Grow(1); err != nil {
			t.Fatal(err)
		}
		s.Advance(n, 1)
		s.Seal(tokens[:n])
	}
	if got := c.Stats().Checkpoints; got != 3 {
		t.Errorf("%d checkpoints, want 3", got)
	}
}

func TestAPieceOfAPromptLeavesTheCheckpointsThatAreWanted(t *testing.T) {
	h := newHistoryOf(t, recurrentShape, F16, ^uint64(0), 8, 0)
	prompt := tokensFrom(1, 60)
	h.open(prompt)
	s := h.seqs[0]
	for _, at := range []int{38, 13, 24, 39, 55} { // in whole blocks of 4: twice 36, 12, 24 and 52
		s.Want(at)
	}
	h.grow(0, prompt[:24])
	h.seqs[0].Seal(h.toks[0])
	h.grow(0, prompt[24:50])
	h.seqs[0].Seal(h.toks[0])
	h.verify()
	for tokens, want := range map[int]int{60: 48, 47: 36, 35: 24, 23: 20, 19: 12, 11: 0} {
		found := h.c.Open(prompt[:tokens])
		if found.Len() != want {
			t.Errorf("of %d tokens %d were found, want %d", tokens, found.Len(), want)
		}
		found.Release()
	}
	h.release(0)
	h.open(append(slices.Clone(prompt[:33]), 1, 2, 3)) // parts from the first one after 32 tokens
	if got := h.seqs[0].Wanted(); h.seqs[0].Len() != 24 || !slices.Equal(got, []int{32}) {
		t.Errorf("%d tokens were found, checkpoints are wanted at %v", h.seqs[0].Len(), got)
	}
	for at := range 4 * mostWanted {
		h.seqs[0].Want(100 + 4*at)
	}
	if got := h.seqs[0].Wanted(); len(got) != mostWanted || got[mostWanted-1] != 100+4*(4*mostWanted-1) {
		t.Errorf("%v are wanted", got)
	}
}

// A conversation grows by turns, which leave a checkpoint each, of which there are fewer. Then the distance between two of
// them grows with the distance from the end.
func TestCheckpointsThinOutWithTheirDistance(t *testing.T) {
	const turns, turn, states = 200, 8, 24
	c, err := New(recurrentShape, Options{BlockLen: 4, Blocks: 1024, States: states})
	if err != nil {
		t.Fatal(err)
	}
	tokens := tokensFrom(1, turns*turn+1)
	for end := turn; end < len(tokens); end += turn {
		s := c.Open(tokens[:end])
		if err := s.Grow(end + 1 - s.Len()); err != nil {
			t.Fatal(err)
		}
		s.Advance(end+1, 1)
		s.Seal(tokens)
		s.Release()
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for n := range len(tokens) {
		if again := n - c.Peek(nil, tokens[:n]); again > turn+(len(tokens)-n)/2 {
			t.Errorf("%d tokens from the end %d are computed again", len(tokens)-n, again)
		}
	}
}

func TestGuessesEndWhereAStreamLeavesItsCheckpoint(t *testing.T) {
	h := newHistoryOf(t, recurrentShape, F16, ^uint64(0), 8, 0)
	h.open(nil)
	for n := range int32(70) {
		ahead := h.c.Ahead(h.seqs[0])
		if want := (checkpointTokens - 1 - int(n)%checkpointTokens); ahead != want {
			t.Errorf("%d guesses may follow token %d, want %d", ahead, n, want)
		}
		if ahead = min(ahead, 5); ahead == 0 || n%3 == 0 {
			h.grow(0, []int32{n})
		} else {
			h.guess(0, tokensFrom(n, 1+ahead), ahead, ahead)
		}
		h.seqs[0].Seal(h.toks[0])
		h.verify()
	}
	if got := h.c.Stats().Checkpoints; got != 1 {
		t.Errorf("%d checkpoints, want 1", got)
	}
	few := newHistoryOf(t, recurrentShape, F16, ^uint64(0), 1, 0)
	if few.open(nil); few.c.Ahead(few.seqs[0]) != 0 {
		t.Error("guesses are allowed where there is one state")
	}
	if plain := newHistory(t, F16, ^uint64(0)); plain.c.Ahead(plain.c.Open(nil)) < 1<<20 {
		t.Error("guesses are bounded where there is no state")
	}
}

func TestCheckpointsGiveWayToSequencesOldestFirst(t *testing.T) {
	h := newHistoryOf(t, recurrentShape, F16, ^uint64(0), 3, 0)
	a, b := tokensFrom(1, 9), tokensFrom(101, 9)
	for _, p := range [][]int32{a, b} {
		h.open(p)
		h.grow(0, p)
		h.seqs[0].Seal(p)
		h.release(0)
	}
	if h.c.FreeStates() != 3 {
		t.Fatalf("%d states free, want 3", h.c.FreeStates())
	}
	h.c.Open(a).Release() // now b's is the older one
	for i := range 2 {
		h.open(nil)
		h.grow(i, tokensFrom(int32(200*(i+1)), 2))
		h.verify()
	}
	if n := h.c.Open(b).Len(); n != 0 {
		t.Errorf("%d tokens of the checkpoint that was not used are found, want 0", n)
	}
	h.open(a)
	if n := h.seqs[2].Len(); n != 8 {
		t.Errorf("%d tokens of the checkpoint that was used are found, want 8", n)
	}
	h.grow(2, []int32{1}) // no slot is left for a copy: the checkpoint itself goes
	h.verify()
	if got := h.c.Stats().Checkpoints; got != 0 {
		t.Errorf("%d checkpoints, want 0", got)
	}
	h.fork(2)
	if err := h.seqs[3].Grow(1); !errors.Is(err, ErrNoBlocks) {
		t.Errorf("a fork without a state grew: %v", err)
	}
	h.verify()
}

func TestEvictedBlocksGiveTheirCheckpoints(t *testing.T) {
	h := newHistoryOf(t, recurrentShape, F16, ^uint64(0), 3, 0) // 24 blocks of 4
	h.open(nil)
	h.grow(0, tokensFrom(1, 9))
	h.seqs[0].Seal(h.toks[0])
	h.release(0)
	h.open(nil)
	h.grow(0, tokensFrom(100, 24*4))
	h.verify()
	if got := h.c.Stats().Checkpoints; got != 0 {
		t.Errorf("%d checkpoints of evicted blocks, want 0", got)
	}
}

func TestARecurrentShapeNeedsStates(t *testing.T) {
	if _, err := New(recurrentShape, Options{BlockLen: 4, Blocks: 4}); err == nil {
		t.Error("a cache without states was made")
	}
	if _, err := New(recurrentShape, Options{BlockLen: 4, Blocks: 4, States: 1 << 45}); err == nil {
		t.Error("a cache of 2⁴⁵ states was made")
	}
	for _, none := range []Shape{{}, {Heads: 2, HeadDim: 3}, {Layers: -1, State: 5}} {
		if _, err := New(none, Options{BlockLen: 4, Blocks: 4, States: 4}); err == nil {
			t.Errorf("a cache of neither layers nor states was made: %+v", none)
		}
	}
	cold, err := New(recurrentShape, Options{BlockLen: 4, Blocks: 4, States: 4, Cold: true})
	if err != nil {
		t.Fatal(err)
	}
	s, tokens := cold.Open(nil), tokensFrom(1, 9)
	if err := s.Grow(9); err != nil {
		t.Fatal(err)
	}
	if _, copies := s.Advance(9, 1); copies != nil {
		t.Error("a cold cache wants checkpoints")
	}
	s.Seal(tokens)
	if got := cold.Stats().Checkpoints; got != 0 {
		t.Errorf("a cold cache has %d checkpoints", got)
	}
}

func TestGrowingAStateAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	c, err := New(recurrentShape, Options{BlockLen: 4, Blocks: 64, States: 4})
	if err != nil {
		t.Fatal(err)
	}
	tokens := slices.Repeat([]int32{1}, 4*64)
	s := c.Open(nil)
	if n := testing.AllocsPerRun(40, func() {
		if err := s.Grow(1); err != nil {
			t.Fatal(err)
		}
		s.Advance(s.Len(), 1)
	}); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
	s.Seal(tokens)
}
