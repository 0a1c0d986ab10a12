package kernels

import "runtime"

// Cores is the number of threads that a pool has unless told otherwise: one a
// physical core among those this process may run on, at most GOMAXPROCS, which
// also knows the container's quota. Two hyper-threads of a core share the ports
// that a kernel keeps busy alone: a second worker there would only take its
// cache away, while HTTP and text handling, which stall often, make good use of it.
func Cores() int {
	threads := runtime.GOMAXPROCS(0)
	if cores := physicalCores(); cores > 0 {
		return min(threads, cores)
	}
	return threads
}
