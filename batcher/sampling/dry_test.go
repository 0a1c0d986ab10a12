package sampling

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// dryByComparing returns what DRY subtracts from each token. It compares the end of tokens with every place in them.
func dryByComparing(vocab int, tokens []int32, p *Params) []float32 {
	if p.DRYWindow > 0 {
		tokens = tokens[max(0, len(tokens)-p.DRYWindow):]
	}
	breaks := func(end int) bool { // tokens[:end] ends with a breaker
		return p.DRYBreakers.has(tokens[end-1]) || p.DRYBreakers != nil && slices.ContainsFunc(p.DRYBreakers.sequences, func(s []int32) bool {
			return end >= len(s) && slices.Equal(tokens[end-len(s):end], s)
		})
	}
	limit := 0
	for limit < len(tokens) && !breaks(len(tokens)-limit) {
		limit++
	}
	longest := make([]int, vocab)
	for at := 1; at < len(tokens); at++ { // tokens[at] followed what ends before it
		n := 0
		for n < at && n < limit && tokens[at-1-n] == tokens[len(tokens)-1-n] {
			n++
		}
		longest[tokens[at]] = max(longest[tokens[at]], n)
	}
	less := make([]float32, vocab)
	for t, n := range longest {
		if allowed := cmp.Or(p.DRYAllowedLength, 2); n >= allowed && !p.DRYBreakers.has(int32(t)) {
			less[t] = float32(float64(p.DRYMultiplier) * math.Pow(float64(p.DRYBase), float64(n-allowed)))
		}
	}
	return less
}

func TestDRYSubtractsWhatEveryRepetitionCosts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const vocab = 6
	penalised := 0
	for range 2000 {
		tokens := make([]int32, random.IntN(40))
		for i := range tokens {
			tokens[i] = random.Int32N(1 + random.Int32N(vocab))
		}
		p := Params{DRYMultiplier: 0.8, DRYBase: 1.5, DRYAllowedLength: random.IntN(4), DRYWindow: random.IntN(3) * 10}
		if random.IntN(2) == 0 {
			p.DRYBreakers = NewBreakers([]int32{random.Int32N(vocab)}, [][]int32{{1, 2}, {0, 3, 3}})
		}
		want := dryByComparing(vocab, tokens, &p)
		d := Draw{Row: make([]float32, vocab), Params: p, ID: Sampled, Tokens: tokens}
		s := Sampler{counts: make([]int32, vocab)}
		s.dry(d.Row, tokens, &d.Params)
		for id := range want {
			if got := -d.Row[id]; math.Abs(float64(got-want[id])) > 1e-4*float64(want[id]) {
				t.Fatalf("%v with %+v: token %d has %v less, want %v", tokens, p, id, got, want[id])
			}
			if want[id] > 0 {
				penalised++
			}
		}
		if slices.ContainsFunc(s.counts, func(n int32) bool { return n != 0 }) {
			t.Fatal("the counts are not zero after use")
		}
	}
	if penalised < 1000 {
		t.Errorf("only %d penalties", penalised)
	}
}

func TestDRYOfALongRepetitionIsAFiniteNumber(t *testing.T) {
	d := Draw{Row: []float32{1, 0}, Params: Params{DRYMultiplier: 100, DRYBase: 10}, ID: Sampled, Tokens: make([]int32, 5000)}
	var s Sampler
	s.Run(&d)
	if d.Err != nil || d.Token.ID != 1 || math.IsInf(float64(d.Row[0]), 0) {
		t.Errorf("drew %d (%v), logits %v", d.Token.ID, d.Err, d.Row)
	}
}

func TestTopNSigmaKeepsTheLogitsNearTheLargest(t *testing.T) {
	row := []float32{5, 4, 3, 1, 1, negInf} // deviation 1.6
	f := frequencies(t, row, Params{Temperature: 2, TopNSigma: 1}, 4000)
	if f[0] == 0 || f[1] == 0 || f[2]+f[3]+f[4]+f[5] != 0 {
		t.Errorf("with one standard deviation tokens come as often as %v", f)
	}
	f = frequencies(t, row, Params{Temperature: 2, TopNSigma: 1.5}, 4000)
	if f[2] == 0 || f[3]+f[4] != 0 {
		t.Errorf("with one and a half tokens come as often as %v", f)
	}
}

func TestXTCLeavesOutAllButTheLeastLikelyOfTheLikely(t *testing.T) {
	row := logs(0.5, 0.25, 0.15, 0.06, 0.04)
	f := frequencies(t, row, Params{Temperature: 1, XTCProbability: 1, XTCThreshold: 0.1}, 20000)
	for id, want := range []float64{0, 0, 0.6, 0.24, 0.16} {
		if math.Abs(f[id]-want) > 0.02 {
			t.Errorf("token %d comes with frequency %v, want %v", id, f[id], want)
		}
	}
	f = frequencies(t, row, Params{Temperature: 1, XTCProbability: 0.5, XTCThreshold: 0.1}, 20000)
	for id, want := range []float64{0.25, 0.125, 0.375, 0.15, 0.1} {
		if math.Abs(f[id]-want) > 0.02 {
			t.Errorf("half the time, token %d comes with frequency %v, want %v", id, f[id], want)
		}
	}
	f = frequencies(t, row, Params{Temperature: 1, XTCProbability: 1, XTCThreshold: 0.4}, 20000)
	if math.Abs(f[0]-0.5) > 0.02 {
		t.Errorf("a single likely token comes with frequency %v, want 0.5", f[0])
	}
}

func TestXTCOfOneDrawLeavesOthersOfTheRowAlone(t *testing.T) {
	row := logs(0.6, 0.3, 0.1)
	b := NewBatch(nil)
	b.Reset(1)
	for i := range 400 {
		d := b.Add(0, row)
		d.ID, d.Position, d.Tokens, d.Prompt = Sampled, i/2, nil, 0
		d.Params = Params{Temperature: 1, Seed: 7}
		if i%2 == 0 {
			d.Params.XTCProbability, d.Params.XTCThreshold = 1, 0.2
		}
	}
	b.Run()
	for i := 1; i < 400; i += 2 {
		alone, err := sample(row, Params{Temperature: 1, Seed: 7}, i/2)
		if got := b.At(i).Token.ID; err != nil || got != alone.ID {
			t.Fatalf("draw %d beside one with XTC is %d, alone %d (%v)", i, got, alone.ID, err)
		}
	}
}

func logs(ps ...float64) (row []float32) {
	for _, p := range ps {
		row = append(row, float32(math.Log(p)))
	}
	return row
}
