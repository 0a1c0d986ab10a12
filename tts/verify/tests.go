package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/sandbox"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// tests runs an answer's code with a request's tests. Its score is the share that pass.
type tests struct {
	language string
	tests    []string
}

func newTests(v *scaling.Verify) (Check, error) {
	if !slices.Contains(sandbox.Languages(), v.Language) {
		return nil, fault("language", "expected %s, but got %.40q", strings.Join(sandbox.Languages(), " or "), v.Language)
	}
	return &tests{v.Language, v.Tests}, nil
}

// Check implements Check. The code is the last fenced block.
func (t *tests) Check(ctx context.Context, answer string) (Verdict, error) {
	p := sandbox.Program{Language: t.language, Code: lastBlock(answer), Tests: t.tests}
	r, err := sandbox.Run(ctx, &p, sandbox.Steps())
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{float32(r.Passed) / float32(len(t.tests)), fmt.Sprintf("%d of %d tests passed", r.Passed, len(t.tests))}
	if r.Fault != "" {
		v.Words += "; " + r.Fault
	}
	return v, nil
}
