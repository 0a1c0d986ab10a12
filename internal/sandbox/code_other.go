//go:build !unix

package sandbox

// mapsCode tells whether the system lets a program make code while it runs.
func mapsCode() bool { return true }
