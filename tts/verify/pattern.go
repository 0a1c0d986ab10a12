package verify

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/lutra-lm/lutra/internal/cpulimit"
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
func (p *pattern) Check(ctx context.Context, text string) (Verdict, error) {
	a, ok := p.final.Read(text)
	if !ok {
		return Verdict{0, "no final answer"}, nil
	}
	r := &pausing{Reader: strings.NewReader(a.Text), ctx: ctx}
	matches := p.expr.MatchReader(r)
	switch {
	case r.err != nil:
		return Verdict{}, r.err
	case matches:
		return Verdict{1, "the final answer matches"}, nil
	}
	return Verdict{0, fmt.Sprintf("the final answer %.80q does not match", a.Text)}, nil
}

// pausing is a text whose reader lets others go first now and then. It ends early with ctx.
type pausing struct {
	*strings.Reader
	ctx  context.Context
	read int
	err  error // ctx's
}

// pauseAfter is the number of characters that are read between pauses. An expression takes a microsecond for
// one, ten if it is as large as is allowed.
const pauseAfter = 256

// ReadRune implements io.RuneReader.
func (p *pausing) ReadRune() (r rune, size int, err error) {
	if p.read++; p.read%pauseAfter == 0 && p.err == nil {
		p.err = cpulimit.Pause(p.ctx)
	}
	if p.err != nil {
		return 0, 0, io.EOF
	}
	return p.Reader.ReadRune()
}
