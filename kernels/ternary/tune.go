package ternary

import (
	"math/rand/v2"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// Choice returns the kernels that this machine's products of a packing go to, by number of tokens as long as
// the matrix has rows enough for them: measured at the first call, or as LUTRA_KERNEL says. It says why.
// The constant rules were measured on few machines and reasoned for the rest.
func Choice(p matrix.Packing) (rules choice.Rules, why string) {
	if overridden != nil {
		return choice.Always(overridden.name), "as LUTRA_KERNEL says"
	}
	return choices[cpu.Active()][tritsPerByte(p)-4].Of(question(p))
}

// choices are by instruction set, of I2 and I1.
var choices [cpu.NEON + 1][2]choice.Choice

// rulesFor returns the rules of a packing on this machine.
func rulesFor(p matrix.Packing) (list []rule) {
	chosen, _ := Choice(p)
	for _, r := range chosen {
		list = append(list, rule{cpu.Active(), p, r.From, kernelNamed(r.Method)})
	}
	return list
}

// The matrix that is multiplied to choose. Constant rules are for parts of as many rows.
const (
	tuneRows = 1024
	tuneCols = 1024
)

// tuneTokens are the batch sizes measured; between them the last one counts.
// They lie close where multiply-add and lookup were seen to meet.
var tuneTokens = []int{1, 2, 4, 8, 9, 10, 11, 12, 16, 32, 64}

// question asks for the kernels of a packing.
func question(p matrix.Packing) choice.Question {
	q := choice.Question{Name: p.String(), Usual: usualFor(p)}
	for _, k := range kernels {
		if k.isa == cpu.Generic || !cpu.Has(k.isa) {
			continue
		}
		m := choice.Method{Name: k.name}
		if k.rest != nil { // which multiplies less than a tile
			m.Least = k.tokens
		}
		q.Methods = append(q.Methods, m)
	}
	for _, n := range tuneTokens {
		q.Widths = append(q.Widths, choice.Width{From: n, Tokens: []int{n}})
	}
	q.Prepare = func(on *pool.Pool) ([]byte, func(string, int), error) { return prepare(on, p) }
	return q
}

// usualFor returns the constant rules of a packing.
func usualFor(p matrix.Packing) (list choice.Rules) {
	for _, r := range rules {
		if r.isa != cpu.Active() || r.packing != p {
			continue
		}
		if n := len(list); n > 0 && list[n-1].From == r.from { // the last rule counts
			list = list[:n-1]
		}
		list = append(list, choice.Rule{From: r.from, Method: r.kernel.name})
	}
	if list == nil {
		return choice.Always(kernels[0].name)
	}
	return list
}

// prepare makes a matrix, and what multiplies it by a kernel.
func prepare(on *pool.Pool, p matrix.Packing) (weights []byte, multiply func(kernel string, n int), err error) {
	run := NewRunner(on, new(stream.Order))
	run.only = kernels[0] // Load asks for no rules
	rng := rand.New(rand.NewPCG(1, 2))
	l, err := run.Load(Arbitrary(tuneRows, tuneCols, p, rng))
	if err != nil {
		return nil, nil, err
	}
	most := tuneTokens[len(tuneTokens)-1]
	x, y := make([]float32, most*tuneCols), make([]float32, most*tuneRows)
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	var rows acts.Rows
	var task Task
	return l.w.Data, func(kernel string, n int) {
		run.only = kernelNamed(kernel)
		rows.Set(x[:n*tuneCols], n, tuneCols)
		l.Mul(y, &rows, &task)
	}, nil
}
