// Package sweep says how far tests go that walk more cases than a change is likely to
// need: mutations of files, histories, kernels that are slow by design. Each walks a part
// that reaches all the code; the gate's step test walks them all.
package sweep

import "os"

// All tells whether LUTRA_SWEEPS=all.
func All() bool { return os.Getenv("LUTRA_SWEEPS") == "all" }

// Of returns all where All, and some elsewhere.
func Of(some, all int) int {
	if All() {
		return all
	}
	return some
}
