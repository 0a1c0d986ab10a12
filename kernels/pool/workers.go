package pool

// Workers runs a task: a whole pool, or one of its workers alone, which
// computes every part while the other workers do something else.
type Workers struct {
	Pool  *Pool
	Alone bool
}

// N returns the number of workers.
func (w Workers) N() int {
	if w.Alone {
		return 1
	}
	return w.Pool.Threads()
}

// Run executes t; a worker alone has number 0.
func (w Workers) Run(t Task, parts int) {
	if !w.Alone {
		w.Pool.Run(t, parts)
		return
	}
	for i := range parts {
		t.Do(0, i)
	}
}

// Parts counts the parts of n things, size things each, the last perhaps fewer.
func Parts(n, size int) int { return (n + size - 1) / size }
