//go:build !amd64 || purego

package choice

// Evict does nothing: systems need not let programs drop lines from caches here.
func Evict([]byte) {}
