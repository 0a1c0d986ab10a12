//go:build !linux

package disk

import "os"

// expect does nothing: the system reads when it is asked.
func expect(*os.File, int64, int64) {}
