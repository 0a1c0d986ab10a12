//go:build !unix

package server

// fileLimit is how many files the process may have open: there is no such limit.
func fileLimit() uint64 { return 0 }
