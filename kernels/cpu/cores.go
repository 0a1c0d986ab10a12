package cpu

import "runtime"

// Cores is the number of threads that a pool has unless told otherwise: one a
// physical core among those this process may run on, and no more than its
// container pays for. Two hyper-threads of a core share the ports that a kernel
// keeps busy alone: a second worker there would only take its cache away, while
// HTTP and text handling, which stall often, make good use of it. A part of a
// processor is no use to workers that wait for each other, hence a quota of 2.5
// processors makes two (GOMAXPROCS is then three, and never less than two).
func Cores() int {
	threads := min(runtime.GOMAXPROCS(0), runtime.NumCPU()) // GOMAXPROCS may have been raised for a pool
	for _, n := range []int{physicalCores(), quotaCores()} {
		if n > 0 {
			threads = min(threads, n)
		}
	}
	return threads
}
