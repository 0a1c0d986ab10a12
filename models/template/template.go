package template

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/models/template/jinja"
)

// ChatML is the template for files that carry none.
const ChatML = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + (message['content'] or '') + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// Plain is the template for models that know no turns at all, such as base
// models: a written dialogue, whose answers end where the user would go on.
const Plain = `{% for message in messages %}{{ message['role'] | capitalize + ': ' + (message['content'] or '') + '\n\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}`

// plainStop ends an answer in such a dialogue.
const plainStop = "\nUser:"

// RaisedError is the error of Render when the template itself refuses the
// conversation, such as one whose roles do not alternate.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return "template: " + e.Message }

// Template is a parsed chat template. It is safe for concurrent use.
type Template struct {
	source string
	tmpl   *jinja.Template

	thinking bool // it has that name for reasoning, as gpt-oss: never beside both a text and calls

	findings
}

// Input holds the variables that a template reads.
type Input struct {
	Messages            []Message
	Tools               []any // tool definitions: anything that encodes to JSON, json.RawMessage to keep the order of keys
	AddGenerationPrompt bool  // end with the beginning of an answer
	BOS, EOS            string
	Now                 time.Time      // the time of strftime_now; zero for the present
	Extra               map[string]any // more variables, such as enable_thinking; those above win
	// Adapt brings calls of tools, as the OpenAI API has them, into the form that the template wants. Arguments
	// are objects or text, results come in the order of their calls, one call at a time, ids have nine letters,
	// and no text is null or empty.
	Adapt  bool
	Limits jinja.Limits // zero for jinja.DefaultLimits
}

// Parse reads a template.
func Parse(src string) (*Template, error) {
	tmpl, err := jinja.Parse(src)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	t := &Template{source: src, tmpl: tmpl, thinking: strings.Contains(src, "message.thinking")}
	t.find(t.Render)
	return t, nil
}

// Source returns what Parse was given.
func (t *Template) Source() string { return t.source }

// Render writes the conversation. Its error is a *RaisedError when the
// template refuses the conversation, ErrLimit of package jinja when it uses
// too much, ctx's error when that is cancelled.
func (t *Template) Render(ctx context.Context, in Input) (string, error) {
	vars := make(map[string]any, len(in.Extra)+8)
	for _, name := range slices.Sorted(maps.Keys(in.Extra)) {
		x, err := value(in.Extra[name])
		if err != nil {
			return "", fmt.Errorf("template: variable %q: %w", name, err)
		}
		vars[name] = x
	}
	messages := jinja.NewList()
	given := in.Messages
	if in.Adapt && slices.ContainsFunc(given, func(m Message) bool { return m.ToolCalls != nil }) {
		var err error
		if given, err = t.adapt(given); err != nil {
			return "", err
		}
	}
	for i := range given {
		m, err := given[i].value(in.Adapt, t)
		if err != nil {
			return "", fmt.Errorf("template: message %d: %w", i, err)
		}
		messages.Items = append(messages.Items, m)
	}
	vars["messages"] = messages
	vars["tools"] = nil
	if len(in.Tools) > 0 {
		tools := jinja.NewList()
		for i, tool := range in.Tools {
			v, err := value(tool)
			if err != nil {
				return "", fmt.Errorf("template: tool %d: %w", i, err)
			}
			tools.Items = append(tools.Items, v)
		}
		vars["tools"] = tools
	}
	vars["documents"] = nil
	vars["add_generation_prompt"] = in.AddGenerationPrompt
	vars["bos_token"], vars["eos_token"] = in.BOS, in.EOS
	vars["raise_exception"] = jinja.Func(raise)
	now := in.Now
	if now.IsZero() {
		now = time.Now()
	}
	vars["strftime_now"] = jinja.Func(func(args []any, _ map[string]any) (any, error) {
		if len(args) != 1 {
			return nil, errors.New("strftime_now takes a format")
		}
		format, _ := args[0].(string)
		return strftime(now, format)
	})
	lim := in.Limits
	if lim == (jinja.Limits{}) {
		lim = jinja.DefaultLimits()
	}
	text, err := t.tmpl.Render(ctx, vars, lim)
	if raised := (*RaisedError)(nil); errors.As(err, &raised) {
		return "", raised
	}
	if err != nil {
		return "", fmt.Errorf("template: %w", err)
	}
	return text, nil
}

func raise(args []any, _ map[string]any) (any, error) {
	message := "the template refused the conversation"
	if len(args) > 0 {
		if s, ok := args[0].(string); ok {
			message = s
		}
	}
	return nil, &RaisedError{message}
}
