//go:build !linux && !darwin && !windows

package hub

import "errors"

func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
