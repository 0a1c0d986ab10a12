package cli

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// usageError marks a mistake on the command line.
type usageError struct{ Err error }

func usagef(format string, args ...any) error { return usageError{Err: fmt.Errorf(format, args...)} }

func (u usageError) Error() string { return u.Err.Error() }

func (u usageError) Unwrap() error { return u.Err }

// brief bounds what an error repeats.
func brief(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + " ..."
	}
	return text
}

// wantedDuration describes the values of a duration.
const wantedDuration = "a duration such as 30s, 5m or 100ms"

// noUnit is what is wrong with a duration that is a number alone.
func noUnit(number string) error {
	return fmt.Errorf("%s has no unit; write %[1]ss for seconds", brief(number))
}

// planError words what is wrong with a written plan for whoever wrote it.
func planError(err error) error {
	var plan *scaling.Error
	switch {
	case !errors.As(err, &plan):
		return err
	case plan.Code == scaling.CodeUnknownMethod:
		return fmt.Errorf("%s; or in short bon8, sc16, beam16x4, dvts16x4", plan.Message)
	case plan.Field == "":
		return errors.New(plan.Message)
	}
	return fmt.Errorf("%s: %s", plan.Field, plan.Message)
}
