//go:build !linux

package gguf

import "os"

// expect does nothing: the system reads when it is asked.
func expect(*os.File, int64, int64) {}
