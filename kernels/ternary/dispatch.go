package ternary

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// actForm is the arrangement of activations that a kernel reads; acts.Codes
// describes them.
type actForm uint8

const (
	formRows actForm = iota
	formQuads
	formTiles
	formLanes
	formPaired
	formOctets
)

// kernel is one way to multiply. All of them read the one packed layout.
type kernel struct {
	name      string // "isa:method", as LUTRA_KERNEL names it
	isa       cpu.ISA
	form      func(p matrix.Packing, n int) (form actForm, width int)
	tokens    int                        // of a part; 0: all tokens of the run
	strips    int                        // most strips of a part
	perThread int                        // parts wished for each worker
	least     int                        // strips × tokens a worker must have for the rules to choose it
	build     func(p matrix.Packing) int // rows it takes through a part's tables in the time these take; nil: none
	streams   bool                       // workers walk through shards of strips with all tokens; tokens is 0
	rest      *kernel                    // takes the tokens that fill no part; nil: the best one for so few
	// mul computes y for a range of strips and of tokens.
	mul func(m *Task, r *segmentRun, s *scratch, strips, tokens extent)
	// one computes y of a single token for one strip, and prefetches as many bytes
	// from next on; nil: mul does single tokens too.
	one func(m *Task, r *segmentRun, s *scratch, strip int, next uintptr)
	// shared lets two workers share a part; nil: nobody can help with one.
	shared *sharedKernel
}

// rule says that from a number of tokens on a kernel is the best one
// for a packing and parts of tuneRows rows. The last rule that fits counts.
type rule struct {
	isa     cpu.ISA
	packing matrix.Packing
	from    int
	kernel  *kernel
}

// maxSegments is the most kernels that one product is divided among.
const maxSegments = 2

// overridden is the kernel LUTRA_KERNEL names, if it names one.
var overridden = findKernel(os.Getenv("LUTRA_KERNEL"))

// Implementations lists the ternary kernels this machine can run, by the names
// LUTRA_KERNEL takes.
func Implementations() []string {
	var names []string
	for _, k := range kernels {
		if cpu.Has(k.isa) || k.isa == cpu.Generic {
			names = append(names, k.name)
		}
	}
	return names
}

// findKernel gives the kernel that an override names with ISA and method; nil
// leaves the choice to the rules.
func findKernel(override string) *kernel {
	if !strings.Contains(override, ":") {
		return nil
	}
	have := Implementations()
	if !slices.Contains(have, override) {
		fmt.Fprintf(os.Stderr, "lutra: LUTRA_KERNEL=%s: no such kernel here (have %v)\n", override, have)
		return nil
	}
	return kernelNamed(override)
}

// kernelNamed returns the kernel of that name, which there is.
func kernelNamed(name string) *kernel {
	return kernels[slices.IndexFunc(kernels, func(k *kernel) bool { return k.name == name })]
}

// makePlan divides n tokens among kernels: all to the best one, or to the
// one that only names. A tile kernel leaves what fills no tile to the kernel
// it says or, unless only forbids, to the one that is best for so few tokens.
// work is the strips × tokens of each worker.
func makePlan(rules []rule, only *kernel, p matrix.Packing, n, work int) (plan [maxSegments]segment) {
	k := only
	if k == nil {
		k = bestKernel(rules, p, n, work)
	}
	rest, other := n%max(k.tokens, 1), k
	switch {
	case rest == 0:
	case k.rest != nil:
		other = k.rest
	case only == nil && rest < n:
		other = bestKernel(rules, p, rest, work*rest/n)
	}
	switch {
	case other == k:
		plan[0] = segment{k, 0, n}
	case rest == n:
		plan[0] = segment{other, 0, n}
	default:
		plan[0], plan[1] = segment{k, 0, n - rest}, segment{other, n - rest, n}
	}
	return plan
}

func bestKernel(rules []rule, p matrix.Packing, n, work int) *kernel {
	k := kernels[0]
	for _, r := range rules {
		if r.isa == cpu.Active() && r.packing == p && r.fits(n, work) {
			k = r.kernel
		}
	}
	return k
}

// fits reports whether a rule applies to n tokens and a worker's work. A kernel
// with tables does a tile's work for fewer tokens too; whether that pays is a
// matter of how many rows share the tables as well.
func (r *rule) fits(n, work int) bool {
	k := r.kernel
	if n >= k.tokens || k.build == nil {
		return n >= r.from && work >= k.least
	}
	rows, build := work*StripRows/n, k.build(r.packing)
	return n*rows*(tuneRows+build) >= r.from*tuneRows*(rows+build)
}
