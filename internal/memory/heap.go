package memory

import (
	"math"
	"runtime"
	"runtime/debug"
)

// BoundHeap limits the heap to what it holds now, which is the models, plus what
// requests may hold, in bytes. Without it the heap doubles before garbage is
// collected, even from gigabytes of weights. GOMEMLIMIT takes precedence. The limit
// holds until undo is called.
func BoundHeap(requests int64) (undo func()) {
	const inherited = -1 // leaves the limit as it is
	before := debug.SetMemoryLimit(inherited)
	if before == math.MaxInt64 {
		debug.SetMemoryLimit(heapLimit(requests))
	}
	return func() { debug.SetMemoryLimit(before) }
}

// heapLimit returns the limit of the process's memory in bytes. Requests may leave half of
// what they may hold as garbage between collections.
func heapLimit(requests int64) int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	const besides = 64 << 20 // engines at work, connections
	return int64(m.Sys-m.HeapSys+m.HeapAlloc) + requests + requests/2 + besides
}
