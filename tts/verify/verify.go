package verify

import (
	"context"
	"strings"

	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Check judges answers.
type Check interface {
	// Check judges an answer without its thoughts: whole, or as far as it has come. Errors are ctx's, or
	// those of a service that does not answer.
	Check(ctx context.Context, answer string) (Verdict, error)
}

// Verdict is what a check makes of an answer.
type Verdict struct {
	Score float32 // in [0, 1]
	Words string  // why, in a line; may be empty
}

// New makes the check that a plan asks for. final finds the final answer for checks of that alone.
// Errors are *scaling.Errors.
func New(v *scaling.Verify, final *answer.Reader) (Check, error) {
	switch v.Kind() {
	case scaling.VerifyTests:
		return newTests(v)
	case scaling.VerifySchema:
		return newSchema(string(v.Schema))
	case scaling.VerifyPattern:
		return newPattern(v.Pattern, final)
	default:
		return newArithmetic()
	}
}

// fault makes the error of a field of a plan's verify.
func fault(field, format string, args ...any) error {
	return scaling.Errorf(scaling.CodeValue, "verify."+field, format, args...)
}

const fence = "```"

// lastBlock returns what stands in the last fenced block of a text, be it closed or not; all of a text without one.
func lastBlock(text string) string {
	var block []string
	found, inside := false, false
	for line := range strings.SplitSeq(text, "\n") {
		switch marks := strings.HasPrefix(strings.TrimLeft(line, " \t"), fence); {
		case marks && inside:
			inside = false
		case marks:
			found, inside, block = true, true, nil
		case inside:
			block = append(block, line)
		}
	}
	if !found {
		return text
	}
	return strings.Join(block, "\n")
}
