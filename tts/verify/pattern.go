package verify

import (
	"context"
	"fmt"
	"regexp"

	"github.com/lutra-lm/lutra/tts/answer"
)

// pattern matches the final answer. Its score is 1 or 0.
type pattern struct {
	expr  *regexp.Regexp
	final *answer.Reader
}

func newPattern(expr string, final *answer.Reader) (Check, error) {
	re, err := answer.CompileRegex(expr)
	if err != nil {
		return nil, fault("pattern", "%v", err)
	}
	return &pattern{re, final}, nil
}

// Check implements Check.
func (p *pattern) Check(_ context.Context, text string) (Verdict, error) {
	a, ok := p.final.Read(text)
	switch {
	case !ok:
		return Verdict{0, "no final answer"}, nil
	case p.expr.MatchString(a.Text):
		return Verdict{1, "the final answer matches"}, nil
	}
	return Verdict{0, fmt.Sprintf("the final answer %.80q does not match", a.Text)}, nil
}
