// Package usage describes mistakes on the command line, in configurations and in
// search plans.
package usage

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Error is a mistake on the command line. Its exit status is 2; other failures have 1.
type Error struct{ Err error }

// Errorf makes an Error.
func Errorf(format string, args ...any) error { return Error{Err: fmt.Errorf(format, args...)} }

func (u Error) Error() string { return u.Err.Error() }

func (u Error) Unwrap() error { return u.Err }

// Brief shortens what an error repeats.
func Brief(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + " ..."
	}
	return text
}

// Duration describes the values of a duration.
const Duration = "a duration such as 30s, 5m or 100ms"

// NoUnit returns the error for a duration that is a number alone.
func NoUnit(number string) error {
	return fmt.Errorf("%s has no unit; write %[1]ss for seconds", Brief(number))
}

// PlanError explains what is wrong with a written search plan.
func PlanError(err error) error {
	var plan *scaling.Error
	switch {
	case !errors.As(err, &plan):
		return err
	case plan.Code == scaling.CodeUnknownMethod:
		return errtext.Keyed(fmt.Errorf("%s; or in short bon8, sc16, beam16x4, dvts16x4", plan.Message))
	case plan.Field == "":
		return errtext.Keyed(errors.New(plan.Message))
	}
	return errtext.Keyed(fmt.Errorf("%s: %s", plan.Field, plan.Message))
}
