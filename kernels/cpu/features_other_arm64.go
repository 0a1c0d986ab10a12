//go:build arm64 && !windows && !purego

package cpu

// processorFeature is for Windows alone.
func processorFeature(uint32) bool { return false }
