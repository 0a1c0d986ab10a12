package models

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/kv"
)

// readings computes tokens in steps of the given sizes, on so many threads, and returns what a probe reads
// of each.
func readings(t *testing.T, name string, threads int, p *Probe, tokens []int32, sizes ...int) []float32 {
	t.Helper()
	workers := pool.New(threads)
	defer workers.Close()
	f, err := embedded.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadFile(f, LoadOptions{Pool: workers})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r := newRunner(t, b.Model, kv.F16)
	var all []float32
	for i := 0; len(tokens) > 0; i++ {
		n := min(sizes[i%len(sizes)], len(tokens))
		if err := r.seq.Grow(n); err != nil {
			t.Fatal(err)
		}
		r.b.Reset()
		r.b.Probe = p
		r.b.Add(r.seq, r.seq.Len()-n, n, tokens[:n]...)
		if err := b.Model.Forward(&r.b, r.kv); err != nil {
			t.Fatal(err)
		}
		all, tokens = append(all, r.b.Readings...), tokens[n:]
	}
	return all
}

func TestReadingsHaveTheSameBitsOneTokenAtATimeAndAllAtOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tokens := make([]int32, 150) // several shards of rows
	for i := range tokens {
		tokens[i] = int32(rng.IntN(1024))
	}
	for _, name := range []string{"lutra-tiny-moe", "lutra-tiny-s"}[:sweep.Cases(1, 2)] {
		p := &Probe{Layers: []int{0, 2}, Channels: 2, Weights: make([][]float32, 2)}
		for i := range p.Weights {
			for range 2 * 256 {
				p.Weights[i] = append(p.Weights[i], rng.Float32()-0.5)
			}
		}
		states := &Probe{Layers: p.Layers}
		for _, probe := range []*Probe{p, states} {
			want := readings(t, name, 1, probe, tokens, 1)
			for _, threads := range []int{1, 3} {
				for _, sizes := range [][]int{{150}, {40, 1, 7}} {
					if got := readings(t, name, threads, probe, tokens, sizes...); !slices.Equal(got, want) {
						t.Errorf("%s: on %d threads, in steps of %v: other readings than one token at a time", name, threads, sizes)
					}
				}
			}
		}
		x, got := readings(t, name, 1, states, tokens, 150), readings(t, name, 1, p, tokens, 150)
		for row := range tokens {
			for c := range 2 {
				want := float32(0)
				for at := range p.Layers {
					want += vector.Dot(rowOf(p.Weights[at], c, 256), rowOf(x, 2*row+at, 256))
				}
				if got[2*row+c] != want {
					t.Fatalf("%s: row %d has %v in channel %d, want %v of its states", name, row, got[2*row+c], c, want)
				}
			}
		}
	}
}

func TestReadingsAreOfTheRowsThatWantLogits(t *testing.T) {
	f, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadFile(f, oneThread(t))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	tokens := []int32{5, 9, 300, 41, 7, 8}
	p := &Probe{Layers: []int{0, 1, 2}}
	all := readings(t, "lutra-tiny-s", 1, p, tokens, len(tokens))
	r := newRunner(t, b.Model, kv.F16)
	if err := r.seq.Grow(len(tokens)); err != nil {
		t.Fatal(err)
	}
	r.b.Reset()
	r.b.Probe = p
	r.b.Add(r.seq, 0, 2, tokens...)
	if err := b.Model.Forward(&r.b, r.kv); err != nil {
		t.Fatal(err)
	}
	if want := all[4*3*256:]; !slices.Equal(r.b.Readings, want) {
		t.Errorf("the readings of the last two rows are %d numbers, want the %d that they have among all", len(r.b.Readings), len(want))
	}
	r.feed(1, 4)
	if len(r.b.Readings) != 0 {
		t.Errorf("%d numbers are read without a probe", len(r.b.Readings))
	}
}
