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

// fences are the words after a fence that name a language.
var fences = map[string][]string{"javascript": {"javascript", "js"}, "python": {"python", "python3", "py"}}

// programs returns the texts in an answer that may be its program. Answers define a function in one block and
// another in the next, so first come the fenced blocks that name the language, as one. Then comes the last
// block, since other answers write a program again.
func programs(answer, language string) []string {
	var code string
	for _, b := range blocks(answer) {
		if slices.Contains(fences[language], b.language) {
			code += b.text
		}
	}
	last := lastBlock(answer)
	if code == "" || code == last {
		return []string{last}
	}
	return []string{code, last}
}

// Check implements Check.
func (t *tests) Check(ctx context.Context, answer string) (Verdict, error) {
	var r sandbox.Result
	for _, code := range programs(answer, t.language) {
		p := sandbox.Program{Language: t.language, Code: code, Tests: t.tests}
		var err error
		if r, err = sandbox.Run(ctx, &p, sandbox.Steps()); err != nil {
			return Verdict{}, err
		}
		if r.Passed > 0 {
			break
		}
	}
	v := Verdict{float32(r.Passed) / float32(len(t.tests)), fmt.Sprintf("%d of %d tests passed", r.Passed, len(t.tests))}
	if r.Fault != "" {
		v.Words += "; " + r.Fault
	}
	return v, nil
}
