//go:build amd64 && !purego

package grouped

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kept"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Methods lists how this machine can multiply matrices of a packing with several tokens.
func Methods(p matrix.Packing) []string {
	if cpu.Active() == cpu.AVX512 && cpu.HasGFNI && gfniAVX512[p] != nil {
		return []string{MAD, GFNI}
	}
	return []string{MAD}
}

// usual is the method to begin with: Intel's processors have two ports of 512 bits, a Zen 5
// has four.
var usual = map[bool]string{false: MAD, true: GFNI}[cpuid.CPU.VendorID == cpuid.Intel]

// chosen returns the choice between two methods: the usual one, unless another was measured to
// be faster at the first load of a matrix of the packing.
func chosen(p matrix.Packing) (method, why string) {
	if forced != "" {
		return forced, "forced"
	}
	if set := os.Getenv("LUTRA_KERNEL"); set != "" {
		if _, method, _ := strings.Cut(set, ":"); method == GFNI {
			return GFNI, "as LUTRA_KERNEL says"
		} else if method != "" {
			return MAD, "as LUTRA_KERNEL says"
		}
		return usual, "the usual one, for LUTRA_KERNEL is set"
	}
	c := &choices[p]
	c.once.Do(func() {
		if before, ok := kept.Recall(p.String()); ok && slices.Contains(Methods(p), before) {
			c.method, c.why = before, "measured by an earlier run"
			return
		}
		c.method, c.why = measureMethods(p)
		kept.Note(p.String(), c.method)
	})
	return c.method, c.why
}

// choices holds what was chosen for each packing.
var choices [len(formats)]struct {
	once        sync.Once
	method, why string
}

// What is multiplied to choose: few enough rows to take a tenth of a millisecond, a few
// tokens and as many as the widest tile has.
const (
	choiceRows   = 128
	choiceCols   = 1024
	choiceFew    = 4
	choiceMany   = 14
	choiceRounds = 5 // of which the best counts
)

// choiceMargin is by how much another method must be faster than the usual one.
const choiceMargin = 1.2

// replaces reports whether a method that takes other for few and many tokens is to take the
// place of the usual one.
func replaces(usual, other [2]time.Duration) bool {
	return float64(usual[1]) > choiceMargin*float64(other[1]) && other[0] <= usual[0]
}

// measureMethods chooses by the time that a thread computes.
func measureMethods(p matrix.Packing) (method, why string) {
	m := &matrix.Matrix{Rows: choiceRows, Cols: choiceCols, Packing: p}
	m.Data = cpu.Aligned[byte](bands.Count(m.Rows) * BandBytes(p, m.Cols))
	for i := range m.Data {
		m.Data[i] = 0x3c // codes and scales of ordinary size
	}
	x, y := make([]float32, choiceMany*m.Cols), make([]float32, choiceMany*m.Rows)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	methods := Methods(p)
	took := map[string][2]time.Duration{}
	scratch := bands.Scratch{Panel: cpu.Aligned[byte](bands.PanelGroups * bands.MaxPanelGroup)}
	var all time.Duration
	cpu.OnThread(func(clock func() time.Duration) {
		begin := clock()
		pool := pool.New(1)
		defer pool.Close()
		var in acts.Rows
		in.Set(x, choiceMany, m.Cols)
		for round := range choiceRounds + 1 {
			for _, method := range methods {
				best := took[method]
				for i, n := range []int{choiceFew, choiceMany} {
					k := &kernel{w: m, f: &formats[p], tiles: tilesBy(method, p)}
					k.Prepare(pool, &in)
					start := clock()
					k.Add(&scratch, y, m.Rows, 0, bands.Count(m.Rows), &in, 0, n, 0, m.Cols)
					if t := clock() - start; round <= 1 || t < best[i] { // the first one is for pages and caches
						best[i] = t
					}
				}
				took[method] = best
			}
		}
		all = clock() - begin
	})
	why = fmt.Sprintf("measured in %v", all.Round(100*time.Microsecond))
	for _, other := range methods {
		if other != usual && replaces(took[usual], took[other]) {
			return other, why
		}
	}
	return usual, why
}
