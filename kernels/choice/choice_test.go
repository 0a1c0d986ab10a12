package choice

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/pool"
)

var few = []Width{{1, []int{1}}, {2, []int{2, 4}}, {5, []int{8}}, {9, []int{16, 32}}}

// What is measured is given here, never taken from a clock: rates in 10^9 multiply-accumulates a second,
// by tokens, of methods that are named "mad" and "gfni".
type rates map[int][2]float64

func (r rates) product(method string, n int) (time.Duration, bool) {
	i := map[string]int{"mad": 0, "gfni": 1}[method]
	return time.Duration(1e6 * float64(n) / r[n][i]), true
}

func (r rates) chosen(usual Rules) string {
	q := Question{Methods: []Method{{Name: "mad"}, {Name: "gfni"}}, Usual: usual, Widths: few}
	return q.choose(q.time(r.product)).String()
}

func TestEachWidthGetsTheMethodThatWasMeasuredToBeFastest(t *testing.T) {
	for name, c := range map[string]struct {
		measured rates
		want     string
	}{
		// One token from memory and 8 streams as on a Genoa, which begins with "mad" there.
		"Genoa, Q4":     {rates{1: {34, 43}, 2: {60, 70}, 4: {100, 110}, 8: {100, 120}, 16: {130, 110}, 32: {140, 110}}, "1:gfni;9:mad"},
		"Genoa, Q4M":    {rates{1: {31, 43}, 2: {60, 70}, 4: {90, 100}, 8: {95, 104}, 16: {120, 100}, 32: {130, 100}}, "1:gfni;9:mad"},
		"Genoa, Q6":     {rates{1: {19, 27}, 2: {40, 50}, 4: {70, 80}, 8: {80, 100}, 16: {90, 110}, 32: {90, 110}}, "1:gfni"},
		"Genoa, FP4":    {rates{1: {34, 45}, 2: {60, 60}, 4: {100, 90}, 8: {100, 103}, 16: {120, 100}, 32: {130, 110}}, "1:gfni;2:mad"},
		"Genoa, Q2G128": {rates{1: {52, 85}, 2: {90, 120}, 4: {140, 150}, 8: {150, 150}, 16: {160, 130}, 32: {160, 140}}, "1:gfni;5:mad"},

		"too close to tell":                          {rates{1: {50, 52}, 2: {50, 52}, 4: {50, 52}, 8: {50, 52}, 16: {50, 52}, 32: {50, 52}}, "1:mad"},
		"a width's methods lose as little as can be": {rates{1: {50, 50}, 2: {50, 54}, 4: {60, 50}, 8: {50, 54}, 16: {50, 45}, 32: {50, 80}}, "1:mad;5:gfni"},
	} {
		if got := c.measured.chosen(Always("mad")); got != c.want {
			t.Errorf("%s: chose %s, want %s", name, got, c.want)
		}
	}
	close := rates{1: {50, 52}, 2: {52, 50}, 4: {50, 52}, 8: {50, 52}, 16: {50, 60}, 32: {50, 60}}
	if got := close.chosen(Rules{{1, "gfni"}, {9, "mad"}}); got != "1:gfni" {
		t.Errorf("of a usual choice that changes: %s, want 1:gfni", got)
	}
}

// Whatever the methods of a machine take, each number of tokens gets a method within the measure's error
// of the best, where one method is best in a width.
func TestNoWidthLosesMoreThanTheMarginToTheBestMethod(t *testing.T) {
	for _, usual := range []string{"mad", "gfni"} {
		for factor := 0.5; factor < 2; factor += 0.01 {
			r := rates{}
			for _, n := range []int{1, 2, 4, 8, 16, 32} {
				r[n] = [2]float64{100, 100 * factor}
			}
			chosen := r.chosen(Always(usual))
			loss := max(1, factor)
			if chosen == "1:gfni" {
				loss = max(1, 1/factor)
			}
			if loss > 1.07 {
				t.Errorf("gfni %.2f times as fast: chose %s, which loses a factor of %.2f", factor, chosen, loss)
			}
		}
	}
}

func TestAMethodThatWasNotMeasuredAtAWidthIsNotChosenThere(t *testing.T) {
	q := Question{Methods: []Method{{Name: "mad"}, {Name: "tile", Least: 4}}, Usual: Always("mad"), Widths: few}
	timings := q.time(func(method string, n int) (time.Duration, bool) {
		if method == "tile" {
			return 1, true
		}
		return 1000, true
	})
	if got := q.choose(timings).String(); got != "1:mad;5:tile" { // of 2 and 4 tokens it knows 4 alone
		t.Errorf("chose %s, want 1:mad;5:tile", got)
	}
}

// A kernel of a tile takes as long for one token as for many: it has its turn when as
// many tokens take the others as long.
func TestAMethodThatCannotWinIsNotTimed(t *testing.T) {
	q := Question{Methods: []Method{{Name: "slow"}, {Name: "lookup"}, {Name: "tile", Least: 64}, {Name: "steady"}}, Usual: Always("steady")}
	all := []int{1, 2, 4, 8, 9, 10, 11, 12, 16, 32, 64}
	for _, n := range all {
		q.Widths = append(q.Widths, Width{n, []int{n}})
	}
	runs := map[string][]int{}
	timings := q.time(func(method string, n int) (time.Duration, bool) {
		runs[method] = append(runs[method], n)
		switch method {
		case "steady":
			return time.Duration(10 * n), true
		case "slow":
			return time.Duration(31 * n), true
		case "tile":
			return time.Duration(9 * n), true
		}
		return time.Duration(100 * ((n + 15) / 16)), true
	})
	for name, want := range map[string][]int{"steady": all, "lookup": {1, 8, 9, 10, 11, 12, 16, 32, 64}, "slow": {1, 4, 9, 32}, "tile": {64}} {
		got := runs[name]
		if len(got) != 1+rounds*len(want) || !slices.Equal(got[1:1+len(want)], want) {
			t.Errorf("timed %s with %v tokens, want one warm run, and %v in each of %d rounds", name, got, want, rounds)
		}
	}
	if got, want := q.choose(timings).String(), "1:steady;11:lookup"; got != want {
		t.Errorf("chose %s, want %s", got, want)
	}
}

// A disturbance of some rounds, longer or shorter than the truth, changes nothing.
func TestDisturbedRoundsDoNotCount(t *testing.T) {
	calls := 0
	q := Question{Methods: []Method{{Name: "mad"}, {Name: "gfni"}}, Usual: Always("mad"), Widths: few[:1]}
	timings := q.time(func(method string, n int) (time.Duration, bool) {
		calls++
		took := map[string]time.Duration{"mad": 100, "gfni": 80}[method]
		switch calls {
		case 4, 11:
			took *= 50
		case 8, 15:
			took /= 50
		}
		return took, true
	})
	if got := q.choose(timings).String(); got != "1:gfni" {
		t.Errorf("chose %s, want 1:gfni", got)
	}
}

func TestNothingIsChosenWhenTimeRunsOutBeforeThereAreEnoughRounds(t *testing.T) {
	q := Question{Methods: []Method{{Name: "mad"}, {Name: "gfni"}}, Usual: Always("mad"), Widths: few}
	const first = 2 + 2*6 // warm runs and timings of two methods
	const least = first + (enough-1)*2*6
	for _, left := range []int{0, 1, 2, 10, first, least - 1, least, least + 1, first * rounds} {
		with := left
		timings := q.time(func(string, int) (time.Duration, bool) {
			with--
			return 1, with >= 0
		})
		if (timings != nil) != (left >= least) {
			t.Errorf("with time for %d products: %d timings", left, len(timings))
		}
	}
	q.Prepare = func(*pool.Pool) ([]byte, func(string, int), error) {
		return make([]byte, 100), func(string, int) {}, nil
	}
	if timings, _ := q.measure(-1); timings != nil {
		t.Errorf("without time measured %v", timings)
	}
}

func TestRulesOfAnEarlierRunAreFollowedOnlyIfTheyAnswerTheQuestion(t *testing.T) {
	t.Cleanup(func() { KeepIn("", "") })
	t.Setenv("LUTRA_KERNEL", "")
	q := Question{Name: "Q4", Methods: []Method{{Name: "mad"}, {Name: "avx512:gfni"}}, Usual: Always("mad"), Widths: few}
	measured := 0
	q.Prepare = func(*pool.Pool) ([]byte, func(string, int), error) {
		measured++
		return make([]byte, 64), func(string, int) {}, nil
	}
	KeepIn(filepath.Join(t.TempDir(), "kernels"), "v1")
	for text, follow := range map[string]bool{
		"1:avx512:gfni":             true,
		"1:mad;2:avx512:gfni;9:mad": true,
		"gfni":                      false, // as versions wrote it that chose for all widths at once
		"avx512:gfni":               false,
		"I2:1:mad":                  false,
		"2:mad":                     false, // nothing for one token
		"1:mad;1:mad":               false,
		"1:mad;5:mad;2:mad":         false,
		"1:mad;3:avx512:gfni":       false, // no such width
		"1:mad;9x:avx512:gfni":      false,
		"1:lut":                     false, // of another machine
	} {
		note(q.Name, text)
		before := measured
		rules, why := new(Choice).Of(q)
		if follow != (measured == before) || follow && rules.String() != text || (why == "measured by an earlier run") != follow {
			t.Errorf("of %q came %v, %q", text, rules, why)
		}
		if now, ok := recall(q.Name); !follow && (!ok || now == text) {
			t.Errorf("%q stays in the file", text)
		}
	}
	t.Setenv("LUTRA_KERNEL", "avx512")
	if rules, why := new(Choice).Of(q); rules.String() != "1:mad" || why != "the usual ones, for LUTRA_KERNEL is set" {
		t.Errorf("with LUTRA_KERNEL: %v, %q", rules, why)
	}
}

func TestEvictingChangesNoBytes(t *testing.T) {
	b := make([]byte, 1000)
	for i := range b {
		b[i] = byte(i)
	}
	Evict(b)
	Evict(b[:3])
	for i := range b {
		if b[i] != byte(i) {
			t.Fatalf("byte %d is %d", i, b[i])
		}
	}
}
