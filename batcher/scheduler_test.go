package batcher

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// stream and prompt are the two kinds of wants.
func stream(have int) want       { return want{have: have, target: have + 1, outFrom: have} }
func prompt(have, upTo int) want { return want{have: have, target: upTo, outFrom: upTo - 1} }

func TestPlanFillsWholeTilesStreamsFirst(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants []want
		l     limits
		want  []int
	}{
		{"a lone prompt takes the whole step", []want{prompt(0, 1000)}, limits{256, 8, 0}, []int{256}},
		{"a short prompt is computed at once", []want{prompt(10, 30)}, limits{256, 8, 0}, []int{20}},
		{"streams leave the rest of their tile", []want{stream(5), prompt(0, 100), stream(9)}, limits{256, 8, 32}, []int{1, 30, 1}},
		{"a measured pace widens the step", []want{stream(5), prompt(0, 500)}, limits{256, 8, 128}, []int{1, 127}},
		{"a full tile of streams still admits half a tile", slices.Concat(slices.Repeat([]want{stream(1)}, 20), []want{prompt(0, 99)}),
			limits{256, 64, 32}, append(slices.Repeat([]int{1}, 20), 44)},
		{"the oldest prompt gets half, the shortest the rest", []want{prompt(0, 900), prompt(0, 400), prompt(0, 10)}, limits{64, 8, 0}, []int{32, 22, 10}},
		{"what the others leave goes back to the oldest", []want{prompt(0, 900), prompt(0, 10)}, limits{64, 8, 0}, []int{54, 10}},
		{"rows of logits bound scoring", []want{{have: 0, target: 100, outFrom: 0}}, limits{64, 8, 0}, []int{8}},
		{"tokens before the first wanted row are not bound", []want{{have: 0, target: 100, outFrom: 20}}, limits{64, 8, 0}, []int{28}},
		{"streams leave a row to prompts", []want{stream(1), stream(1), prompt(0, 3)}, limits{64, 2, 0}, []int{1, 0, 3}},
	} {
		var s scheduler
		if got := s.plan(c.wants, c.l); !slices.Equal(got, c.want) {
			t.Errorf("%s: plan = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTooManyStreamsTakeTurns(t *testing.T) {
	var s scheduler
	served := make([]int, 10)
	wants := slices.Repeat([]want{stream(3)}, 10)
	for range 10 {
		for i, n := range s.plan(wants, limits{tokens: 32, rows: 4}) {
			served[i] += n
		}
	}
	if want := slices.Repeat([]int{4}, 10); !slices.Equal(served, want) {
		t.Errorf("served %v, want %v", served, want)
	}
}

func TestPlanKeepsItsLimitsAndEveryWantIsServedInTheEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var s scheduler
		l := limits{tokens: Tile * (1 + r.IntN(6)), rows: 2 + r.IntN(40), paced: Tile * r.IntN(8)}
		wants := make([]want, 1+r.IntN(80))
		total := 0
		for i := range wants {
			w := &wants[i]
			w.have = r.IntN(50)
			w.target = w.have + 1 + r.IntN(2)*r.IntN(300)
			w.outFrom = w.have + r.IntN(w.target-w.have)
			if r.IntN(4) == 0 {
				w.outFrom = noRows
			}
			total += w.left()
		}
		for steps := 0; len(wants) > 0; steps++ {
			if steps > total {
				t.Fatalf("%d wants are not served after %d steps", len(wants), steps)
			}
			tokens, rows, given := 0, 0, s.plan(wants, l)
			for i, n := range given {
				if n < 0 || n > wants[i].left() {
					t.Fatalf("%+v is given %d tokens", wants[i], n)
				}
				tokens += n
				rows += wants[i].rows(n)
				wants[i].have += n
			}
			if tokens == 0 || tokens > l.tokens || rows > l.rows {
				t.Fatalf("a step of %d tokens and %d rows, limits %+v", tokens, rows, l)
			}
			wants = slices.DeleteFunc(wants, func(w want) bool { return w.left() == 0 })
		}
	}
}

func TestThePaceConvergesToTheTargetWhateverTheMachine(t *testing.T) {
	for _, c := range []struct {
		name        string
		fixed, tile time.Duration
		want        int // tiles
	}{
		{"weights dominate", 30 * time.Millisecond, 10 * time.Millisecond, 7},
		{"tokens dominate", time.Millisecond, 24 * time.Millisecond, 4},
		{"faster than needed", time.Millisecond, time.Millisecond, 16},
		{"slower than wanted", 200 * time.Millisecond, 50 * time.Millisecond, 0},
	} {
		p := pace{target: 100 * time.Millisecond}
		took := func(tiles int) time.Duration { return c.fixed + time.Duration(tiles)*c.tile }
		p.observe(512, took(16)) // a prompt before there are streams
		for range 50 {
			p.observe(Tile, took(1)) // streams alone
		}
		for range 100 {
			lanes := max(Tile, p.lanes(512))
			p.observe(lanes, took(lanes/Tile))
		}
		if got := p.lanes(512) / Tile; got < c.want-1 || got > c.want {
			t.Errorf("%s: %d tiles, want %d", c.name, got, c.want)
		}
	}
}

func TestThePaceFollowsAMachineThatSlowsDown(t *testing.T) {
	p := pace{target: 100 * time.Millisecond}
	tile := 10 * time.Millisecond
	step := func() int {
		lanes := max(Tile, p.lanes(512))
		p.observe(lanes, time.Duration(lanes/Tile)*tile)
		return lanes / Tile
	}
	for range 100 {
		step()
	}
	before := step()
	tile *= 3
	for range 100 {
		step()
	}
	if after := step(); before < 9 || before > 10 || after != 3 {
		t.Errorf("%d tiles, three times slower %d; want 9 or 10, and 3", before, after)
	}
}
