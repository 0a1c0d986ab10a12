//go:build !purego

package cpu

import "golang.org/x/sys/windows"

// processorFeature asks the system for a feature by its number in winnt.h.
func processorFeature(id uint32) bool { return windows.IsProcessorFeaturePresent(id) }
