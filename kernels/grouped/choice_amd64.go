//go:build amd64 && !purego

package grouped

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// Methods lists how this machine can multiply matrices of a packing.
func Methods(p matrix.Packing) []string {
	if cpu.Active() == cpu.AVX512 && cpu.HasGFNI && gfniOf(p) != nil {
		return []string{MAD, GFNI}
	}
	return []string{MAD}
}

var usual = usualOf(cpuid.CPU.VendorID, cpuid.CPU.Family)

// usualOf returns the methods to begin with: Intel's processors have two ports of 512 bits, and so has
// in effect a Zen 4 (family 25), whose units have 256; a Zen 5 has four.
func usualOf(vendor cpuid.Vendor, family int) choice.Rules {
	switch {
	case vendor == cpuid.Intel:
		return choice.Always(GFNI)
	case vendor == cpuid.AMD && family == 25:
		return choice.Rules{{From: 1, Method: GFNI}, {From: 9, Method: MAD}}
	}
	return choice.Always(MAD)
}

// What is multiplied to choose: enough weights for what begins and ends a product to count for little, and few
// enough for a hundred products in some milliseconds. Rows of half the columns let tiles of many tokens look slower
// than they are.
const (
	choiceBytes = 512 << 10
	choiceBands = 64 // at most
	choiceCols  = kBlock
)

// prepare makes such a matrix, and what multiplies it.
func prepare(pool *pool.Pool, p matrix.Packing) (weights []byte, multiply func(method string, n int), err error) {
	n := min(choiceBytes/BandBytes(p, choiceCols), choiceBands)
	m := &matrix.Matrix{Rows: n * bands.Rows, Cols: choiceCols, Packing: p, Data: cpu.Aligned[byte](n * BandBytes(p, choiceCols))}
	for i := range m.Data {
		m.Data[i] = 0x3c // codes and scales of ordinary size
	}
	run := bands.NewRunner(pool, new(stream.Order))
	by := map[string]*bands.Linear{}
	for _, method := range Methods(p) {
		k := &kernel{productOf(m), tilesBy(choice.Always(method), p)}
		if by[method], err = run.Load(m, k, nil); err != nil {
			return nil, nil, err
		}
	}
	most := 0
	for _, w := range widths {
		most = max(most, w.Tokens[len(w.Tokens)-1])
	}
	x, y := make([]float32, most*m.Cols), make([]float32, most*m.Rows)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	var in acts.Rows
	var task bands.Task
	return m.Data, func(method string, n int) {
		in.Set(x[:n*m.Cols], n, m.Cols)
		by[method].Mul(y, &in, &task)
	}, nil
}
