//go:build !linux && !purego

package cpu

import "errors"

// askForTiles fails: how another system than Linux is asked was never tried.
func askForTiles() error { return errors.New("tiles are used on Linux alone") }
