package grouped

import (
	"os"
	"strings"

	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Methods of multiplying, as LUTRA_KERNEL names them after the instruction set. They read the same
// packed matrix and give the same bits.
const (
	MAD  = "mad"  // the tiles of the instruction set
	GFNI = "gfni" // those for two ports of 512 bits
)

// widths are the numbers of tokens that one method multiplies: one stream, a few, 8 streams, and
// whatever fills the widest tiles.
var widths = [...]choice.Width{{From: 1, Tokens: []int{1}}, {From: 2, Tokens: []int{2, 4}}, {From: 5, Tokens: []int{8}}, {From: 9, Tokens: []int{16, 32}}}

// Choice returns the methods that multiply matrices of a packing, of those that Methods lists, and why.
func Choice(p matrix.Packing) (rules choice.Rules, why string) {
	if len(Methods(p)) < 2 {
		return choice.Always(MAD), "nothing to choose"
	}
	if forced != nil {
		return forced, "forced"
	}
	if _, method, _ := strings.Cut(os.Getenv("LUTRA_KERNEL"), ":"); method == GFNI {
		return choice.Always(GFNI), "as LUTRA_KERNEL says"
	} else if method != "" {
		return choice.Always(MAD), "as LUTRA_KERNEL says"
	}
	return choices[p].Of(question(p))
}

// choices are by packing.
var choices [len(formats)]choice.Choice

// question asks for the methods of a packing.
func question(p matrix.Packing) choice.Question {
	q := choice.Question{Name: p.String(), Usual: usual, Widths: widths[:]}
	q.Prepare = func(on *pool.Pool) ([]byte, func(string, int), error) { return prepare(on, p) }
	for _, name := range Methods(p) {
		q.Methods = append(q.Methods, choice.Method{Name: name})
	}
	return q
}

// forced are the rules to use whatever would be chosen; nil: those that are chosen.
var forced choice.Rules

// Force has matrices that are loaded from now on multiplied by these rules, where they can be,
// until restore is called: for tests and benchmarks. No matrix may be loaded while it changes.
func Force(rules choice.Rules) (restore func()) {
	before := forced
	forced = rules
	return func() { forced = before }
}
