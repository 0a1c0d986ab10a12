package verify

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/lutra-lm/lutra/grammar/budget"
	grammar "github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/internal/cpulimit"
)

// schema validates the JSON of an answer. Its score is 1 or 0.
type schema struct{ validator *grammar.Validator }

// The bounds of reading a schema, and of holding an answer to it: less than a second's work.
const (
	schemaSteps = 1 << 21
	schemaBytes = 16 << 20
)

// pause lets others go first; tests replace it.
var pause = cpulimit.Pause

// schemaBudget returns the budget of a task, which pauses within its place for the CPU.
func schemaBudget(ctx context.Context, task string) *budget.Budget {
	b := budget.New(ctx, schemaSteps, schemaBytes, nil)
	b.Begin(ctx, task, schemaSteps, func() {
		if err := pause(ctx); err != nil {
			b.Fail(err)
		}
	})
	return b
}

func newSchema(ctx context.Context, text string) (Check, error) {
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	v, err := grammar.NewValidator([]byte(text), schemaBudget(ctx, "read it"))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, cpulimit.ErrBusy):
		return nil, err
	case err != nil:
		return nil, fault("json_schema", "it cannot be used: %s", cut(strings.TrimPrefix(err.Error(), "schema: ")))
	}
	return &schema{v}, nil
}

// Check implements Check. The JSON is all of the answer, or its last fenced block.
func (s *schema) Check(ctx context.Context, answer string) (Verdict, error) {
	text := []byte(strings.TrimSpace(lastBlock(answer)))
	if !json.Valid(text) {
		return Verdict{0, "no JSON"}, nil
	}
	err := s.validator.Validate(text, schemaBudget(ctx, "hold an answer to it"))
	switch {
	case err == nil:
		return Verdict{1, "it matches the schema"}, nil
	case ctx.Err() != nil:
		return Verdict{}, context.Cause(ctx)
	case errors.Is(err, cpulimit.ErrBusy):
		return Verdict{}, err
	}
	return Verdict{0, cut(strings.TrimPrefix(err.Error(), "schema: "))}, nil
}
