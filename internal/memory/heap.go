package memory

import (
	"math"
	"runtime"
	"runtime/debug"
)

// BoundHeap tells the collector how large the heap is meant to become: what
// it holds now, which is the models, and what requests may hold. By itself the
// heap grows to twice of what it holds before garbage is collected, be that
// gigabytes of weights. GOMEMLIMIT in the environment counts more. The limit
// holds until undo is called.
func BoundHeap(requests int64) (undo func()) {
	const inherited = -1 // leaves the limit as it is
	before := debug.SetMemoryLimit(inherited)
	if before == math.MaxInt64 {
		debug.SetMemoryLimit(heapLimit(requests))
	}
	return func() { debug.SetMemoryLimit(before) }
}

// heapLimit is the bytes that the process's heap is to keep to. Half as much
// again as requests may hold is what they leave behind between collections.
func heapLimit(requests int64) int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	const besides = 64 << 20 // engines at work, connections
	return int64(m.Sys-m.HeapSys+m.HeapAlloc) + requests + requests/2 + besides
}
