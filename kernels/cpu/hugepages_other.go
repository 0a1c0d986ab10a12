//go:build !linux

package cpu

import "unsafe"

func preferHugePages(unsafe.Pointer, int) {}
func spread(unsafe.Pointer, int)          {}
func commit(unsafe.Pointer, int) bool     { return false }
