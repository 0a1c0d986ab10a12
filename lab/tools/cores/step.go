package main

import (
	"math"
	"time"
)

// task is one hand-out of a pool in a step.
type task struct {
	parts int
	help  help
	work  time.Duration // of all parts, on one thread
}

// help is what a worker does that finds no part left.
type help int

const (
	none  help = iota
	units      // takes units of all other workers' parts (kernels/stream)
	pairs      // one helps the owner of a part (kernels/ternary/sharing.go)
)

// step is what a step consists of.
type step struct {
	tasks []task
	alone time.Duration // of the caller, between tasks
	bytes float64       // of weights, keys and values
}

// took returns how long the step takes on some threads of a machine, and how long it
// would if work could be divided at will and handed out in no time. Work scales
// with the cores' speeds; bytes, which belong to tasks by the time these take, come at
// the rate of memory.
func (s *step) took(m *machine, p protocol, threads int) (whole, ideal time.Duration) {
	c := newCrew(m, p, threads)
	total, speed, rate := time.Duration(0), m.speeds(threads), m.rate(threads)
	for _, t := range s.tasks {
		total += t.work
	}
	alone := scaled(s.alone, 1/m.of(0)/float64(len(s.tasks)))
	for _, t := range s.tasks {
		read := time.Duration(s.bytes * float64(t.work) / float64(total) / rate)
		ideal += max(scaled(t.work, 1/speed), read) + alone
		whole += alone
		if t.parts == 1 || threads == 1 {
			whole += max(scaled(t.work, 1/m.of(0)), time.Duration(s.bytes*float64(t.work)/float64(total)/m.rate(1)))
			continue
		}
		part := scaled(t.work, 1/float64(t.parts))
		floor := scaled(read, float64(min(t.parts, threads))/float64(t.parts))
		parts := t.parts
		took := func(core int) time.Duration { return max(scaled(part, 1/m.of(core)), floor) }
		if t.help != none { // all end together
			parts = min(parts, threads)
			together := scaled(t.work, 1/speed)
			if t.help == pairs {
				together = paired(m, threads, t.parts, part)
			}
			took = func(int) time.Duration { return max(together, read) + m.far }
		}
		whole = c.run(whole, parts, took)
	}
	return whole, ideal
}

// paired returns when all parts are done where a worker that finds none left helps the
// owner of one that nobody helps yet.
func paired(m *machine, threads, parts int, part time.Duration) time.Duration {
	type open struct{ left, speed float64 } // in parts; of its owner and its helper
	var under []open
	free := make([]float64, 0, threads) // speeds, of workers without work
	for core := range threads {
		free = append(free, m.of(core))
	}
	helped := map[int]bool{}
	now := 0.0
	for given := 0; ; {
		for len(free) > 0 && given < parts {
			under = append(under, open{1, free[0]})
			free, given = free[1:], given+1
		}
		for i := range under {
			if len(free) > 0 && under[i].left > 0 && !helped[i] {
				under[i].speed += free[0]
				free, helped[i] = free[1:], true
			}
		}
		next := math.Inf(1)
		for _, u := range under {
			if u.left > 0 {
				next = min(next, u.left/u.speed)
			}
		}
		if math.IsInf(next, 1) {
			return scaled(part, now)
		}
		now += next
		for i := range under {
			u := &under[i]
			if u.left <= 0 {
				continue
			}
			if u.left -= next * u.speed; u.left < 1e-9 {
				u.left = 0
				free = append(free, u.speed) // helper and owner as one: they would take the next parts together
			}
		}
	}
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
