//go:build !unix

package doctor

// fileLimit is not known: there is none of the kind.
func fileLimit() uint64 { return 0 }
