//go:build !linux

package cpu

// physicalCores and quotaCores do not know.
func physicalCores() int { return 0 }
func quotaCores() int    { return 0 }
