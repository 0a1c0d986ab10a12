// Package parallel calls a function for many items at once.
package parallel

import "runtime"

// Each calls f for all items at once and returns the first item's error, when all
// calls have returned.
func Each[T any](items []T, f func(i int, item T) error) error {
	return Start(items, f)()
}

// Start runs Each with the waiting left to the caller, who must call wait and may do
// so more than once. A panic of f comes out of wait, as a *Panic.
func Start[T any](items []T, f func(i int, item T) error) (wait func() error) {
	errs := make([]error, len(items))
	all := &Group{}
	for i, item := range items {
		all.Go(func() { errs[i] = f(i, item) })
	}
	return func() error {
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// leastOfRange is the least number of rows or blocks that are worth a goroutine.
const leastOfRange = 16

// Ranges calls f on ranges that cover [0, n), on all cores, and returns when all calls have. It
// panics as they do.
func Ranges(n int, f func(lo, hi int)) {
	parts := min(runtime.GOMAXPROCS(0), (n+leastOfRange-1)/leastOfRange)
	var all Group
	for i := range parts {
		all.Go(func() { f(n*i/parts, n*(i+1)/parts) })
	}
	all.Wait()
}
