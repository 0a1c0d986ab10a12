package main

import (
	"testing"
	"time"
)

// even is a step of tasks that any number of cores can divide.
func even(parts int, h help) step {
	s := step{bytes: 1}
	for range 10 {
		s.tasks = append(s.tasks, task{parts, h, 10 * time.Millisecond})
	}
	return s
}

func TestAStepOnOneThreadTakesItsWork(t *testing.T) {
	m := &machine{cores: 8, cluster: 8, memory: 1e3, core: 1e3, speed: []float64{0.5}}
	s := even(16, none)
	if whole, ideal := s.took(m, protocol{}, 1); whole != 200*time.Millisecond || ideal != whole {
		t.Errorf("took %v, ideally %v, want 200ms", whole, ideal)
	}
}

func TestMemoryBoundsAStep(t *testing.T) {
	m := &machine{cores: 8, cluster: 8, memory: 2, core: 1, speed: []float64{1}}
	s := even(8, units)
	s.bytes = 1e9 // half a second of the memory's
	if whole, _ := s.took(m, protocol{}, 8); whole < 500*time.Millisecond || whole > 501*time.Millisecond {
		t.Errorf("took %v, want half a second", whole)
	}
}

func TestEveryProtocolDoesAllParts(t *testing.T) {
	m := &machine{cores: 64, cluster: 8, near: 20, far: 100, memory: 1e3, core: 1e3, speed: []float64{1}}
	for _, p := range []protocol{{}, {look: true}, {look: true, group: 16}} {
		for _, threads := range []int{2, 3, 64} {
			for _, parts := range []int{2, 63, 64, 1000} {
				done, at := 0, time.Duration(0)
				c := newCrew(m, p, threads)
				for range 3 {
					at = c.run(at, parts, func(int) time.Duration { done++; return time.Microsecond })
				}
				if least := 3 * time.Microsecond * time.Duration((parts+threads-1)/threads); done != 3*parts || at < least {
					t.Errorf("%+v, %d threads: %d of %d parts in %v, want no less than %v", p, threads, done, 3*parts, at, least)
				}
			}
		}
	}
}

func TestAFastCoreHelpsASlowOne(t *testing.T) {
	m := &machine{speed: []float64{1, 0.25}}
	// The fast core does its part in 1 s, when 0.75 of the other is left.
	if got, want := paired(m, 2, 2, time.Second), 1600*time.Millisecond; got.Round(time.Millisecond) != want {
		t.Errorf("two parts take %v, want %v", got, want)
	}
}
