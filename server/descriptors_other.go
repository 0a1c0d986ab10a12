//go:build !unix

package server

// fileLimit returns 0: there is no such limit.
func fileLimit() uint64 { return 0 }
