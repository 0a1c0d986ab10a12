//go:build arm64 && !purego

package pool

// pause passes some time between two looks; see pause_arm64.s.
func pause(n int)
