package verify

import (
	"context"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/internal/sandbox"
	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Check judges answers.
type Check interface {
	// Check judges an answer without its thoughts, whole or incomplete. Errors are ctx's, or come from a
	// service that does not answer.
	Check(ctx context.Context, answer string) (Verdict, error)
}

// Verdict is a check's judgement of an answer.
type Verdict struct {
	Score float32 // in [0, 1]
	Words string  // why, in a line; may be empty
}

// New makes the check that a plan asks for. final finds the final answer for checks of that alone.
// Errors are *scaling.Errors, or ctx's.
func New(ctx context.Context, v *scaling.Verify, final *answer.Reader) (Check, error) {
	var check Check
	var err error
	ready := func(context.Context) error { return nil }
	switch v.Kind() {
	case scaling.VerifyTests:
		language := v.Language
		ready = func(ctx context.Context) error { return sandbox.Load(ctx, language) }
		check, err = newTests(v)
	case scaling.VerifySchema:
		check, err = newSchema(ctx, string(v.Schema))
	case scaling.VerifyPattern:
		check, err = newPattern(v.Pattern, final)
	default:
		check, err = newArithmetic()
	}
	if err != nil {
		return nil, err
	}
	return inOrder(check, ready), nil
}

// inTurn checks the answers of a request one after the other, beside the engines: they take one place in
// the queue for the CPU, and the memory of one check.
type inTurn struct {
	check Check
	ready func(context.Context) error // called before there is a place
	turn  *semaphore.Weighted
}

func inOrder(check Check, ready func(context.Context) error) *inTurn {
	return &inTurn{check, ready, semaphore.NewWeighted(1)}
}

// Check implements Check.
func (t *inTurn) Check(ctx context.Context, answer string) (Verdict, error) {
	if err := t.turn.Acquire(ctx, 1); err != nil {
		return Verdict{}, context.Cause(ctx)
	}
	defer t.turn.Release(1)
	if err := t.ready(ctx); err != nil {
		return Verdict{}, err
	}
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return Verdict{}, err
	}
	defer leave()
	return t.check.Check(ctx, answer)
}

// Memory returns how many bytes a check takes at most, for all answers of a request.
func Memory(v *scaling.Verify) int64 {
	switch v.Kind() {
	case scaling.VerifyTests:
		return sandbox.Memory(v.Language)
	case scaling.VerifySchema:
		return schemaBytes
	}
	return 0
}

// fault makes the error of a field of a plan's verify.
func fault(field, format string, args ...any) error {
	return scaling.Errorf(scaling.CodeValue, "verify."+field, format, args...)
}

// mostWords bounds a verdict's words in bytes.
const mostWords = 300

// cut makes a short line of a text.
func cut(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	if len(s) > mostWords {
		s = strings.ToValidUTF8(s[:mostWords], "") + "…"
	}
	return s
}

const fence = "```"

// block is a fenced block of a text, be it closed or not.
type block struct {
	language string // what stands after the fence, in small letters; may be empty
	text     string
}

// blocks returns the fenced blocks of a text.
func blocks(text string) []block {
	var out []block
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		info, marks := strings.CutPrefix(strings.TrimLeft(line, " \t"), fence)
		switch {
		case marks && inside:
			inside = false
		case marks:
			inside = true
			out = append(out, block{language: strings.ToLower(strings.TrimSpace(info))})
		case inside:
			out[len(out)-1].text += line + "\n"
		}
	}
	return out
}

// lastBlock returns what stands in the last fenced block of a text; all of a text without one.
func lastBlock(text string) string {
	all := blocks(text)
	if len(all) == 0 {
		return text
	}
	return all[len(all)-1].text
}
