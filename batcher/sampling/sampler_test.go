package sampling

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// sample draws one token from a copy of row.
func sample(row []float32, p Params, position int) (Token, error) {
	var s Sampler
	d := Draw{Row: slices.Clone(row), Params: p, ID: Sampled, Position: position}
	s.Run(&d)
	return d.Token, d.Err
}

// frequencies draws n times and counts.
func frequencies(t *testing.T, row []float32, p Params, n int) []float64 {
	t.Helper()
	f := make([]float64, len(row))
	for i := range n {
		tok, err := sample(row, p, i)
		if err != nil {
			t.Fatal(err)
		}
		f[tok.ID] += 1 / float64(n)
	}
	return f
}

// reference is the distribution that p defines, by sorting, in float64.
func reference(row []float32, p Params) []float64 {
	type term struct {
		id int
		p  float64
	}
	terms := make([]term, 0, len(row))
	for id, l := range row {
		terms = append(terms, term{id, math.Exp(float64(l) / float64(p.Temperature))})
	}
	normalise := func() {
		z := 0.0
		for _, x := range terms {
			z += x.p
		}
		for i := range terms {
			terms[i].p /= z
		}
	}
	upTo := func(mass float64) {
		sum := 0.0
		for i, x := range terms {
			if sum += x.p; sum >= mass {
				terms = terms[:i+1]
				return
			}
		}
	}
	byP := func() { slices.SortStableFunc(terms, func(a, b term) int { return cmp.Compare(b.p, a.p) }) }
	byP()
	if p.MinP > 0 {
		best := terms[0].p
		terms = slices.DeleteFunc(terms, func(x term) bool { return x.p < float64(p.MinP)*best*(1-1e-6) })
	}
	if p.TopK > 0 {
		terms = terms[:min(p.TopK, len(terms))]
	}
	normalise()
	if on(p.TypicalP) {
		h := 0.0
		for _, x := range terms {
			h -= x.p * math.Log(x.p)
		}
		slices.SortStableFunc(terms, func(a, b term) int {
			return cmp.Compare(math.Abs(-math.Log(a.p)-h), math.Abs(-math.Log(b.p)-h))
		})
		upTo(float64(p.TypicalP))
		normalise()
		byP()
	}
	if on(p.TopP) {
		upTo(float64(p.TopP))
		normalise()
	}
	out := make([]float64, len(row))
	for _, x := range terms {
		out[x.id] = x.p
	}
	return out
}

func TestDrawsFollowTheDistributionThatTheParametersDefine(t *testing.T) {
	rows := map[string][]float32{"small": gaussian(50, 3), "several runs": gaussian(1300, 4)}
	for _, p := range []Params{
		{Temperature: 1}, {Temperature: 0.5}, {Temperature: 2},
		{Temperature: 1, TopK: 5}, {Temperature: 1, TopK: 1}, {Temperature: 3, TopK: 700},
		{Temperature: 1, TopP: 0.9}, {Temperature: 1, TopP: 0.01}, {Temperature: 4, TopP: 0.97},
		{Temperature: 1, MinP: 0.1}, {Temperature: 1, MinP: 1}, {Temperature: 1, TypicalP: 0.8},
		{Temperature: 1.5, TopK: 20, TopP: 0.9, MinP: 0.02, TypicalP: 0.95},
	} {
		for name, row := range rows {
			n := sweep.Cases(1500, 4000)
			want, got := reference(row, p), frequencies(t, row, p, n)
			for id := range row {
				if want[id] == 0 && got[id] != 0 {
					t.Errorf("%s %+v: drew %d, which is excluded", name, p, id)
				}
				// Five standard deviations of a binomial frequency.
				if bound := 5*math.Sqrt(want[id]*(1-want[id])/float64(n)) + 1e-3; math.Abs(want[id]-got[id]) > bound {
					t.Errorf("%s %+v: token %d drawn with frequency %.4f, want %.4f ± %.4f", name, p, id, got[id], want[id], bound)
				}
			}
		}
	}
}

// selected returns the ids of r that a selection keeps, in order.
func selected(r *ranks, w window, others []found) (ids []int32) {
	for _, f := range r.appendTo(nil, w) {
		if !slices.Contains(others, f) {
			ids = append(ids, f.id)
		}
	}
	return ids
}

func TestSelectionAgreesWithSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for round := range sweep.Cases(100, 300) {
		values := []int{3, 40, 1 << 30}[round%3] // many ties, some, none
		x := make([]float32, 1+r.IntN(3*runLen))
		for i := range x {
			x[i] = float32(1+r.IntN(values)) / float32(values)
		}
		k := &ranks{x: x}
		for lo := 0; lo < len(x); lo += runLen {
			k.tops = append(k.tops, slices.Max(x[lo:min(lo+runLen, len(x))]))
		}
		mean := math.Log(r.Float64())
		nearest := func(x float32) float64 { return math.Abs(math.Log(float64(x)) - mean) }
		var s selector
		all := window{0, 1}
		for name, c := range map[string]struct {
			distance func(float32) float64
			fewest   func(count int, share float64) (window, []found)
		}{
			"heaviest": {descending, func(count int, share float64) (window, []found) {
				in, widest := all.best()
				return s.fewest(k, in, widest, count, share, descending)
			}},
			"nearest": {nearest, func(count int, share float64) (window, []found) {
				in, widest := all.around(mean)
				return s.fewest(k, in, widest, count, share, nearest)
			}},
		} {
			sorted := make([]int32, len(x))
			for i := range sorted {
				sorted[i] = int32(i)
			}
			slices.SortStableFunc(sorted, func(a, b int32) int { return cmp.Compare(c.distance(x[a]), c.distance(x[b])) })
			count, share, sum := 1+r.IntN(len(x)), r.Float64(), 0.0
			for _, v := range x {
				sum += float64(v)
			}
			reach := 0
			for need := share * sum; reach < len(x) && (reach == 0 || need > 1e-4); reach++ { // float32 sums have no more digits
				need -= float64(x[sorted[reach]])
			}
			w, others := c.fewest(count, 1)
			if got, want := selected(k, w, others), slices.Sorted(slices.Values(sorted[:count])); !slices.Equal(got, want) {
				t.Fatalf("%s %d of %d are wrong: %d", name, count, len(x), len(got))
			}
			w, others = c.fewest(len(x), share)
			if got, want := selected(k, w, others), slices.Sorted(slices.Values(sorted[:reach])); !slices.Equal(got, want) {
				t.Fatalf("%d %s reach %v of %d, want %d", len(got), name, share, len(x), len(want))
			}
		}
	}
}

func TestIntegersOrderAsTheirNumbersDo(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{-inf, -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, 0, math.SmallestNonzeroFloat32, 1, math.Nextafter32(1, 2), inf}
	for i, v := range x {
		if unordered(ordered(v)) != v {
			t.Errorf("%v comes back as %v", v, unordered(ordered(v)))
		}
		if i > 0 && ordered(x[i-1]) >= ordered(v) {
			t.Errorf("%v does not come before %v", x[i-1], v)
		}
	}
}

func TestGreedyTakesTheLowestOfEqualLogits(t *testing.T) {
	row := []float32{1, 3, 2, 3, 3}
	for _, p := range []Params{{}, {Temperature: 0, TopK: 3, TopP: 0.1}, {Temperature: 1, TopK: 1}} {
		if tok, err := sample(row, p, 0); err != nil || tok.ID != 1 {
			t.Errorf("%+v: %d, %v; want 1", p, tok.ID, err)
		}
	}
}

func TestLogitsThatAreNotNumbersAreNeverDrawn(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, p := range []Params{{}, {Temperature: 1}, {Temperature: 1, TopP: 0.9}, {Temperature: 1, TopK: 3}, {Temperature: 1e-3}, {Temperature: 1, TypicalP: 0.9}, {Temperature: 1, MinP: 0.1}} {
		for i := range 50 {
			if tok, err := sample([]float32{nan, 1, nan, -inf, 2, nan}, p, i); err != nil || tok.ID != 1 && tok.ID != 4 {
				t.Errorf("%+v: drew %d, %v", p, tok.ID, err)
			}
			if tok, err := sample([]float32{1, inf, 2}, p, i); err != nil || tok.ID != 1 {
				t.Errorf("%+v: drew %d, %v beside an infinite logit", p, tok.ID, err)
			}
		}
		for _, row := range [][]float32{{nan, nan}, {-inf, -inf}, {nan, -inf}} {
			if _, err := sample(row, p, 0); !errors.Is(err, ErrSample) {
				t.Errorf("%+v: %v gives %v, want ErrSample", p, row, err)
			}
		}
	}
}

func TestSingleLogitStagesRunInTheirOrder(t *testing.T) {
	row := []float32{2, -1, 0.5, 4}
	s := Sampler{}
	d := Draw{Tokens: []int32{0, 1, 3, 3}, Prompt: 1, Params: Params{
		LogitBias:         map[int32]float32{2: 10, 3: -2, 99: 1},
		RepetitionPenalty: 2, PresencePenalty: 0.5, FrequencyPenalty: 0.25,
	}}
	if err := s.change(row, &d); err != nil {
		t.Fatal(err)
	}
	// 0: 2/2. 1: -1·2 - 0.25 - 0.5. 2: 0.5+10. 3: (4-2)/2 - 2·0.25 - 0.5.
	if want := []float32{1, -2.75, 10.5, 0}; !slices.Equal(row, want) {
		t.Errorf("logits %v, want %v", row, want)
	}
	if i := slices.IndexFunc(s.counts, func(c int32) bool { return c != 0 }); i >= 0 {
		t.Errorf("count of token %d is left for the next row", i)
	}
}

func TestTheRepetitionPenaltyLooksAtItsWindowOnly(t *testing.T) {
	for window, want := range map[int][]float32{0: {2, 2, 2, 4}, 2: {4, 2, 2, 4}, 1: {4, 4, 2, 4}, 9: {2, 2, 2, 4}} {
		var s Sampler
		row := []float32{4, 4, 4, 4}
		d := Draw{Params: Params{RepetitionPenalty: 2, RepetitionWindow: window}, Tokens: []int32{0, 1, 2}}
		if err := s.change(row, &d); err != nil || !slices.Equal(row, want) {
			t.Errorf("window %d: %v, %v, want %v", window, row, err, want)
		}
	}
}

func TestTokensThatAreAllForbiddenAreTheRequestsFault(t *testing.T) {
	row := []float32{1, 2}
	for _, p := range []Params{
		{Constraint: constraint(func([]uint64, []int32) {}).begin()},
		{LogitBias: map[int32]float32{0: negInf, 1: negInf}},
	} {
		if _, err := sample(row, p, 0); !errors.Is(err, ErrForbidden) || !errors.Is(err, ErrSample) {
			t.Errorf("%+v gives %v, want ErrForbidden", p, err)
		}
	}
	if _, err := sample([]float32{negInf, negInf}, Params{}, 0); errors.Is(err, ErrForbidden) {
		t.Errorf("a row of -Inf gives %v", err)
	}
}

// constraint is a Constraint from a function of the completion.
type constraint func(mask []uint64, completion []int32)

// after is where a completion stands in a constraint.
type after struct {
	constraint
	completion []int32
}

// begin is where completions begin in c.
func (c constraint) begin() Constraint { return &after{constraint: c} }

func (a *after) Next(id int32) Constraint {
	return &after{a.constraint, append(slices.Clip(a.completion), id)}
}

func (a *after) Allow(mask []uint64) { a.constraint(mask, a.completion) }

func TestAConstraintDecidesWhatCanBeDrawn(t *testing.T) {
	row := gaussian(200, 9)
	only := constraint(func(mask []uint64, _ []int32) { mask[70/64] |= 1 << (70 % 64); mask[3] |= 1 })
	for i := range 30 {
		if tok, err := sample(row, Params{Temperature: 2, Constraint: only.begin()}, i); err != nil || tok.ID != 70 && tok.ID != 192 {
			t.Errorf("drew %d, %v", tok.ID, err)
		}
	}
	for name, c := range map[string]constraint{
		"allows nothing": func([]uint64, []int32) {},
		"panics":         func([]uint64, []int32) { panic("grammar") },
	} {
		if _, err := sample(row, Params{Constraint: c.begin()}, 0); !errors.Is(err, ErrSample) {
			t.Errorf("a constraint that %s gives %v, want ErrSample", name, err)
		}
	}
}

func TestLogprobsAreThoseOfTheUnmodifiedLogits(t *testing.T) {
	row := []float32{1, 2, 3, float32(math.NaN()), 0}
	z := math.Log(math.Exp(1) + math.Exp(2) + math.Exp(3) + 1)
	tok, err := sample(row, Params{Temperature: 0.1, LogitBias: map[int32]float32{0: 50}, TopLogprobs: 2}, 0)
	if err != nil || tok.ID != 0 || math.Abs(float64(tok.Logprob)-(1-z)) > 1e-6 {
		t.Errorf("token %+v, %v; want 0 with log-probability %v", tok, err, 1-z)
	}
	if want := z - 1.5 - math.Log(4); math.Abs(float64(tok.Certainty)-want) > 1e-6 {
		t.Errorf("certainty %v, want %v: the mean of ln(1/4) - ln p over four numbers", tok.Certainty, want)
	}
	if len(tok.Top) != 2 || tok.Top[0].ID != 2 || tok.Top[1].ID != 1 || math.Abs(float64(tok.Top[0].Logprob)-(3-z)) > 1e-6 {
		t.Errorf("alternatives %v, want 2 and 1", tok.Top)
	}
}

func TestRandomnessDependsOnSeedCandidateAndPositionAlone(t *testing.T) {
	row := gaussian(5000, 2)
	base := Params{Temperature: 3, Seed: 7, Candidate: 1}
	draws := func(p Params) (ids []int32) {
		for i := range 8 {
			tok, _ := sample(row, p, i)
			ids = append(ids, tok.ID)
		}
		return ids
	}
	want := draws(base)
	if got := draws(base); !slices.Equal(got, want) {
		t.Errorf("the same draws give %v and %v", got, want)
	}
	seed, candidate := base, base
	seed.Seed, candidate.Candidate = 8, 2
	if slices.Equal(draws(seed), want) || slices.Equal(draws(candidate), want) {
		t.Error("another seed or candidate draws the same")
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	nan := float32(math.NaN())
	for _, p := range []Params{
		{Temperature: -1}, {Temperature: nan}, {TopP: 1.5}, {TopK: -1}, {MinP: nan}, {TypicalP: -0.1}, {MaxTokens: -1},
		{RepetitionPenalty: -1}, {RepetitionWindow: -1}, {PresencePenalty: nan}, {TopLogprobs: -1}, {TopLogprobs: 1000}, {LogitBias: map[int32]float32{-4: 1}}, {LogitBias: map[int32]float32{4: nan}},
	} {
		if err := p.Validate(); !errors.Is(err, ErrParams) {
			t.Errorf("%+v: %v, want ErrParams", p, err)
		}
	}
	if err := (&Params{Temperature: 2, TopP: 1, LogitBias: map[int32]float32{4: -100}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestAMaskLeavesTheLogitsOfItsTokensAndNoOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 63, 64, 65, 200} {
		row, want := gaussian(n, 3), gaussian(n, 3)
		mask := make([]uint64, (n+63)/64)
		for w := range mask {
			mask[w] = []uint64{0, ^uint64(0), r.Uint64(), 1 << r.IntN(64)}[r.IntN(4)]
		}
		for id := range want {
			if mask[id/64]>>(id%64)&1 == 0 {
				want[id] = negInf
			}
		}
		if forbid(row, mask); !slices.Equal(row, want) {
			t.Errorf("mask %x: %v, want %v", mask, row, want)
		}
	}
}
