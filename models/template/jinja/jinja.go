package jinja

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It is immutable.
type Template struct{ body []stmt }

// MaxSource is the longest template, in bytes, that Parse takes.
const MaxSource = 1 << 18

// Parse reads a template. Its errors are of type *SyntaxError.
func Parse(src string) (t *Template, err error) {
	if len(src) > MaxSource {
		return nil, &SyntaxError{1, fmt.Sprintf("template of %d bytes, at most %d are allowed", len(src), MaxSource)}
	}
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, _, err := parseBody(p)
	if err != nil {
		return nil, err
	}
	return &Template{body}, nil
}

// Render writes the template with the variables vars, whose lists and
// mappings it may change. It ends with ctx's error when that is cancelled and
// with ErrLimit when lim is used up: before what would exceed it is made.
func (t *Template) Render(ctx context.Context, vars map[string]any, lim Limits) (text string, err error) {
	// A fault of this package must cost one request, not the process.
	defer func() {
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("jinja: internal fault: %v", p)
		}
	}()
	r := &renderer{&resources{ctx: ctx, lim: lim}, new(strings.Builder)}
	if lim.Time > 0 {
		r.end = time.Now().Add(lim.Time)
	}
	root := &frame{r: r, vars: globals(r.resources)}
	f := &frame{r: r, vars: make(map[string]any, len(vars)), parent: root}
	for name, v := range vars {
		f.vars[name] = v
	}
	if err := f.run(t.body); err != nil {
		return "", err
	}
	return r.out.String(), nil
}
