package main

import (
	"container/heap"
	"time"
)

// protocol is a way to hand out the parts of a task.
type protocol struct {
	look  bool // a worker looks whether parts are left before it changes the counter
	group int  // workers that share a counter; those that find theirs empty go to the others. 0: all
}

// counter hands out and counts off parts. Cores have its cache line one after another.
type counter struct {
	free          time.Duration // when the line can be had
	owner         int           // the core that had it last
	left, pending int
}

// change is an atomic operation of core at a time; it returns its end.
func (c *counter) change(m *machine, core int, at time.Duration) time.Duration {
	c.free = max(c.free, at) + m.hop(c.owner, core)
	c.owner = core
	return c.free
}

// crew is a pool's workers, one a core; core 0 is the caller.
type crew struct {
	*machine
	protocol
	threads int
	groups  []counter
	root    counter         // counts off groups
	idle    []time.Duration // since when each worker waits
}

func newCrew(m *machine, p protocol, threads int) *crew {
	n := 1
	if p.group > 0 {
		n = (threads + p.group - 1) / p.group
	}
	return &crew{machine: m, protocol: p, threads: threads, groups: make([]counter, n), idle: make([]time.Duration, threads)}
}

// serve is the time between two readers of a line that a cache answers.
const serve = 8 * ns

// run hands out n parts at a time and returns when the caller goes on; took says how long
// a core needs for a part.
func (c *crew) run(at time.Duration, n int, took func(core int) time.Duration) time.Duration {
	open := 0
	at = c.root.change(c.machine, 0, at)
	for g := range c.groups {
		group := &c.groups[g]
		group.left = (g+1)*n/len(c.groups) - g*n/len(c.groups)
		if group.pending = group.left; group.left > 0 {
			open++
		}
		at = group.change(c.machine, 0, at)
	}
	// All that wait read the line that tells of a new task, and then what the task is.
	at += c.hop(0, c.threads-1)
	q := workers{{core: 0, now: at}}
	for core := 1; core < c.threads; core++ {
		heard := max(at+time.Duration(core)*serve, c.idle[core])
		q = append(q, &worker{core: core, now: heard + 2*c.hop(0, core)})
	}
	heap.Init(&q)
	var done time.Duration
	for len(q) > 0 {
		w := q[0]
		group := &c.groups[(w.core*len(c.groups)/c.threads+w.empty)%len(c.groups)]
		if c.look && group.left <= 0 {
			w.now += c.hop(group.owner, w.core)
		} else {
			w.now = group.change(c.machine, w.core, w.now)
		}
		if group.left > 0 {
			group.left--
			w.ran++
			w.now += took(w.core)
			heap.Fix(&q, 0)
			continue
		}
		if w.ran > 0 {
			w.now = group.change(c.machine, w.core, w.now)
			if group.pending -= w.ran; group.pending == 0 {
				if open--; len(c.groups) > 1 {
					w.now = c.root.change(c.machine, w.core, w.now)
				}
				done = max(done, w.now)
			}
			w.ran = 0
		}
		if w.empty++; w.empty == len(c.groups) {
			c.idle[w.core] = w.now
			heap.Pop(&q)
		} else {
			heap.Fix(&q, 0)
		}
	}
	return max(done+c.hop(c.threads-1, 0), c.idle[0])
}

// worker is a core in a task.
type worker struct {
	core  int
	now   time.Duration
	empty int // groups that it has found without parts
	ran   int // parts that it has not counted off
}

// workers is a heap by time.
type workers []*worker

func (q workers) Len() int           { return len(q) }
func (q workers) Less(i, j int) bool { return q[i].now < q[j].now }
func (q workers) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *workers) Push(x any)        { *q = append(*q, x.(*worker)) }
func (q *workers) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	*q = (*q)[:last]
	return w
}
