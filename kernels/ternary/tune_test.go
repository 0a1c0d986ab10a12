package ternary

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

func TestEveryKernelOfThisMachineIsAskedFor(t *testing.T) {
	var want, got []string
	for _, name := range Implementations() {
		if kernelNamed(name).isa != cpu.Generic {
			want = append(want, name)
		}
	}
	pool := pool.New(1)
	defer pool.Close()
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		q := question(p)
		weights, multiply, err := q.Prepare(pool)
		if err != nil || len(weights) != Size(tuneRows, tuneCols, p) {
			t.Fatalf("%v: %d bytes, %v", p, len(weights), err)
		}
		got = nil
		for _, m := range q.Methods {
			got = append(got, m.Name)
			multiply(m.Name, max(m.Least, 1))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: asks for %v of %v", p, got, want)
		}
	}
}

// Which kernels are chosen is up to the machine; that they are its own, and
// that every number of tokens has one, is not.
func TestChoicesAreKernelsOfThisMachine(t *testing.T) {
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		rules, why := Choice(p)
		if why == "" || len(rules) == 0 || rules[0].From != 1 {
			t.Errorf("%v: %v, because %q", p, rules, why)
		}
		for i, r := range rules {
			if !slices.Contains(Implementations(), r.Method) {
				t.Errorf("%v from %d tokens: %s is not among %v", p, r.From, r.Method, Implementations())
			}
			if i > 0 && r.From <= rules[i-1].From {
				t.Errorf("%v: rules from %d and then from %d tokens", p, rules[i-1].From, r.From)
			}
		}
		list := rulesFor(p)
		for i, r := range list {
			if r.isa != cpu.Active() || r.packing != p || r.from != rules[i].From || r.kernel.name != rules[i].Method {
				t.Errorf("%v: rule %d is %v, chosen was %v", p, i, r, rules[i])
			}
		}
	}
}

// Kernels read one packed matrix, and each number of tokens may have its own.
func TestEveryChoiceOfKernelsByTokensGivesTheSameBits(t *testing.T) {
	var here []*kernel
	for _, name := range Implementations() {
		if k := kernelNamed(name); k.isa != cpu.Generic {
			here = append(here, k)
		}
	}
	if len(here) < 2 {
		t.Skip("there is one kernel here")
	}
	pool := pool.New(2)
	defer pool.Close()
	rng := rand.New(rand.NewPCG(31, 32))
	const rows, cols, most = 3*StripRows + 5, 333, 70
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		run := NewRunner(pool, new(stream.Order))
		run.only = here[0] // Load asks for no rules
		l, err := run.Load(Arbitrary(rows, cols, p, rng))
		if err != nil {
			t.Fatal(err)
		}
		x, want := kerneltest.RandomVector(rng, most*cols), map[int][]float32{}
		for _, few := range here {
			for _, many := range here {
				run.only, l.rules = nil, []rule{{cpu.Active(), p, 1, few}, {cpu.Active(), p, 5, many}}
				for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 32, 33, 64, most} {
					var in input
					in.Set(x[:n*cols], n, cols)
					got := make([]float32, n*rows)
					l.Mul(got, &in.Rows, &in.task)
					if want[n] == nil {
						want[n] = got
					}
					if !kerneltest.SameBits(got, want[n]) {
						t.Errorf("%v, %d tokens by %s, from 5 by %s: not the bits of %s alone", p, n, few.name, many.name, here[0].name)
					}
				}
			}
		}
	}
}
