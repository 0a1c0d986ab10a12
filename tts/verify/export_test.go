package verify

import "context"

// Checked returns what a check of New does in its turn.
func Checked(c Check) Check { return c.(*inTurn).check }

// SetPause replaces what lets others go first, until it is called again with what it returns.
func SetPause(f func(context.Context) error) (was func(context.Context) error) {
	was, pause = pause, f
	return was
}
