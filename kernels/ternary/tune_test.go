package ternary

import (
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
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
	if got := tune(rules, 0); !slices.Equal(got, rules) {
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
	for _, m := range measure(measurable(), time.Hour) {
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
	for _, c := range Choices() {
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
