package ternary

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kept"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Made-up kernels: what is measured is given here, never taken from a clock.
var (
	steady   = &kernel{name: "steady"}           // the usual one
	wide     = &kernel{name: "wide", tokens: 16} // and its usual successor
	newcomer = &kernel{name: "newcomer"}
)

func TestKernelsAreChosenByWhatWasMeasured(t *testing.T) {
	usual := []rule{{cpu.Active(), matrix.I2, 1, steady}, {cpu.Active(), matrix.I2, 11, wide}, {cpu.Active(), matrix.I1, 1, steady}}
	type at struct {
		n                      int
		steady, wide, newcomer time.Duration // microseconds; zero: not measured
	}
	for name, c := range map[string]struct {
		measured []at
		want     []rule
	}{
		"as the rules say": {
			[]at{{1, 10, 90, 0}, {8, 80, 90, 0}, {11, 110, 90, 0}, {16, 160, 90, 0}},
			[]rule{{cpu.Active(), matrix.I2, 1, steady}, {cpu.Active(), matrix.I2, 11, wide}}},
		"earlier than the rules say": {
			[]at{{1, 10, 60, 0}, {8, 80, 60, 0}, {16, 160, 60, 0}},
			[]rule{{cpu.Active(), matrix.I2, 1, steady}, {cpu.Active(), matrix.I2, 8, wide}}},
		"never": {
			[]at{{1, 10, 900, 0}, {8, 80, 900, 0}, {16, 160, 900, 0}},
			[]rule{{cpu.Active(), matrix.I2, 1, steady}}},
		"a kernel the rules do not know": {
			[]at{{1, 10, 90, 5}, {8, 80, 90, 100}, {16, 160, 90, 200}},
			[]rule{{cpu.Active(), matrix.I2, 1, newcomer}, {cpu.Active(), matrix.I2, 8, steady}, {cpu.Active(), matrix.I2, 16, wide}}},
		"too close to tell": {
			[]at{{1, 100, 900, 96}, {8, 800, 770, 790}, {16, 870, 900, 860}},
			[]rule{{cpu.Active(), matrix.I2, 1, steady}, {cpu.Active(), matrix.I2, 16, wide}}},
		"the usual one not measured": {
			[]at{{1, 0, 90, 95}},
			[]rule{{cpu.Active(), matrix.I2, 1, wide}}},
	} {
		var timings []timing
		for _, m := range c.measured {
			for _, k := range []struct {
				kernel *kernel
				took   time.Duration
			}{{steady, m.steady}, {wide, m.wide}, {newcomer, m.newcomer}} {
				if k.took > 0 {
					timings = append(timings, timing{matrix.I2, m.n, k.kernel, k.took * time.Microsecond})
				}
			}
		}
		if got := choose(usual, timings); !slices.Equal(got, c.want) {
			t.Errorf("%s: chose %v, want %v", name, names(got), names(c.want))
		}
	}
}

// A kernel of a tile takes as long for one token as for many: it has its turn when as
// many tokens take the others as long.
func TestAKernelThatCannotWinIsNotTimed(t *testing.T) {
	lookup := &kernel{name: "lookup"}
	slow := &kernel{name: "slow"}
	tile := &kernel{name: "tile", tokens: 64, rest: steady}
	runs := map[string][]int{}
	product := func(k *kernel, n int) (time.Duration, bool) {
		runs[k.name] = append(runs[k.name], n)
		switch k {
		case steady:
			return time.Duration(10 * n), true
		case slow:
			return time.Duration(31 * n), true
		case tile:
			return time.Duration(9 * n), true
		}
		return time.Duration(100 * ((n + 15) / 16)), true
	}
	timings, ok := timeKernels(nil, matrix.I2, []*kernel{slow, lookup, tile, steady}, product)
	if !ok {
		t.Fatal("no timings, with time enough")
	}
	for name, want := range map[string][]int{"steady": tuneTokens, "lookup": {1, 8, 9, 10, 11, 12, 16, 32, 64}, "slow": {1, 2, 4, 8, 32}, "tile": {64}} {
		got := runs[name]
		if len(got) != 1+tuneRounds*len(want) || !slices.Equal(got[1:1+len(want)], want) {
			t.Errorf("timed %s with %v tokens, want one warm run, and %v in each of %d rounds", name, got, want, tuneRounds)
		}
	}
	for _, m := range timings {
		if want, _ := product(m.kernel, m.n); m.took != want {
			t.Errorf("%s, %d tokens: %v, want %v", m.kernel.name, m.n, m.took, want)
		}
	}
	if !slices.IsSortedFunc(timings, func(a, b timing) int { return a.n - b.n }) {
		t.Error("timings are not in order of tokens")
	}
}

func TestNothingIsChosenWhenTimeRunsOut(t *testing.T) {
	left := 0
	product := func(*kernel, int) (time.Duration, bool) {
		left--
		return 1, left >= 0
	}
	const all = 2 + tuneRounds*2*11 // warm runs and timings of two kernels
	for _, left = range []int{0, 1, 2, 10, all - 1, all} {
		before := left
		if _, ok := timeKernels(nil, matrix.I2, []*kernel{steady, newcomer}, product); ok != (before == all) {
			t.Errorf("with time for %d products of %d: %v", before, all, ok)
		}
	}
}

func TestEachPackingHasItsOwnRules(t *testing.T) {
	timings := []timing{{matrix.I1, 1, steady, 10}, {matrix.I1, 1, wide, 5}, {matrix.I2, 1, steady, 5}, {matrix.I2, 1, wide, 10}, {matrix.I2, 4, steady, 20}, {matrix.I2, 4, wide, 10}}
	want := []rule{{cpu.Active(), matrix.I1, 1, wide}, {cpu.Active(), matrix.I2, 1, steady}, {cpu.Active(), matrix.I2, 4, wide}}
	if got := choose(nil, timings); !slices.Equal(got, want) {
		t.Errorf("chose %v, want %v", names(got), names(want))
	}
}

func names(rules []rule) (list []Choice) {
	for _, r := range rules {
		list = append(list, Choice{r.packing, r.from, r.kernel.name})
	}
	return list
}

func TestRulesStayWhereThereIsNoTimeToMeasure(t *testing.T) {
	if got, _ := tune(rules, 0); !slices.Equal(got, rules) {
		t.Errorf("without time chose %v, want %v", names(got), names(rules))
	}
}

func TestEveryKernelOfThisMachineIsMeasured(t *testing.T) {
	var want, got []string
	for _, name := range Implementations() {
		if kernelNamed(name).isa != cpu.Generic {
			want = append(want, name)
		}
	}
	for _, k := range measurable() {
		got = append(got, k.name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("measures %v of %v", got, want)
	}
	if len(want) < 2 {
		t.Skip("nothing to choose")
	}
	timings, _ := measure(rules, measurable(), time.Hour)
	for _, m := range timings {
		if i := slices.Index(want, m.kernel.name); i >= 0 {
			want = slices.Delete(want, i, i+1)
		}
	}
	if len(want) > 0 {
		t.Errorf("has no timing of %v", want)
	}
}

// Which kernels are chosen is up to the machine; that they are its own, and
// that every number of tokens has one, is not.
func TestChoicesAreKernelsOfThisMachine(t *testing.T) {
	from := map[matrix.Packing]int{}
	choices, why := Choices()
	if why == "" {
		t.Error("nothing says why")
	}
	for _, c := range choices {
		if !slices.Contains(Implementations(), c.Kernel) {
			t.Errorf("%v from %d tokens: %s is not among %v", c.Packing, c.From, c.Kernel, Implementations())
		}
		last, later := from[c.Packing]
		if !later && c.From != 1 || later && c.From <= last {
			t.Errorf("%v: rules from %d and then from %d tokens", c.Packing, last, c.From)
		}
		from[c.Packing] = c.From
	}
}

func TestRulesOfAnEarlierRunAreFollowedOnlyIfThisMachineCan(t *testing.T) {
	t.Cleanup(func() { kept.In("", "") })
	if len(measurable()) == 0 {
		t.Skip("this machine has nothing to choose from")
	}
	name, more := measurable()[0].name, strconv.Itoa(tuneTokens[1])
	kept.In(filepath.Join(t.TempDir(), "kernels"), "v1")
	if list, _ := recalled(); list != nil {
		t.Errorf("recalled() of nothing = %v", list)
	}
	for _, c := range []struct {
		choice string
		rules  int
	}{
		{"I1:1:" + name + ";I2:1:" + name, 2},
		{"I1:1:" + name + ";I1:" + more + ":" + name + ";I2:1:" + name, 3},
		{"I2:1:" + name, 0}, // nothing of I1
		{"I1:" + more + ":" + name + ";I2:1:" + name, 0},         // begins with more tokens than one
		{"I1:1:" + name + ";I1:1:" + name + ";I2:1:" + name, 0},  // begins twice
		{"I1:1:" + name + ";I2:1:no-such-kernel", 0},             // of another machine
		{"I1:1:" + name + ";I2:1:" + name + ";I2:3x:" + name, 0}, // no number
		{"I1:1:" + name + ";I2:1:" + name + ";I2:999:" + name, 0},
		{"I1:1:" + name + ";Q4:1:" + name, 0}, // not ternary
		{"I1:1:" + name + ";I9:1:" + name, 0},
		{"I1", 0},
	} {
		kept.Note(choiceName, c.choice)
		list, why := recalled()
		if len(list) != c.rules || (why != "") != (c.rules > 0) {
			t.Errorf("recalled() of %q = %v, %q, want %d rules", c.choice, list, why, c.rules)
		}
		for _, r := range list {
			if r.isa != cpu.Active() || r.kernel != measurable()[0] {
				t.Errorf("recalled() of %q has %v", c.choice, r)
			}
		}
	}
}
