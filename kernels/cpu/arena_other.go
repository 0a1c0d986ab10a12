//go:build !unix && !windows

package cpu

// mapRegion returns memory of the heap, where the system has no other.
func mapRegion(bytes int) ([]byte, error) { return make([]byte, bytes), nil }

func unmapRegion([]byte) error { return nil }
