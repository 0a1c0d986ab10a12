package cpu

import "runtime"

// Cores returns the number of threads that a pool has unless told otherwise. It is one for each
// physical core that this process may run on, and no more than the quota of its
// container. Two hyper-threads of a core share execution ports, which one kernel
// keeps busy: a second worker would only compete for cache. HTTP and text handling
// stall often and make good use of the second thread. Workers wait for each other,
// so part of a processor is of no use. A quota of 2.5 processors makes two threads
// (GOMAXPROCS is then three, and never less than two).
func Cores() int {
	threads := min(runtime.GOMAXPROCS(0), runtime.NumCPU()) // GOMAXPROCS may have been raised for a pool
	for _, n := range []int{physicalCores(), quotaCores()} {
		if n > 0 {
			threads = min(threads, n)
		}
	}
	return threads
}
