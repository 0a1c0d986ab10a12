// Package generation holds how a model's answers are sampled where a request does not say: by
// the model's author, by whoever configures a server, or by an API's custom.
//
//	API's custom ◀── author (GGUF, generation_config.json) ◀── configuration ◀── request
//
// Each overrides the one before it, field by field.
package generation

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Config names fields of sampling; nil fields are left to whatever it overrides. The names and
// the meanings are those of requests to /v1/chat/completions.
type Config struct {
	Temperature       *float32 `json:"temperature,omitempty" yaml:"temperature"`
	TopK              *int     `json:"top_k,omitempty" yaml:"top_k"` // 0: all
	TopP              *float32 `json:"top_p,omitempty" yaml:"top_p"`
	MinP              *float32 `json:"min_p,omitempty" yaml:"min_p"`
	TypicalP          *float32 `json:"typical_p,omitempty" yaml:"typical_p"`
	RepetitionPenalty *float32 `json:"repetition_penalty,omitempty" yaml:"repetition_penalty"`
	RepeatLastN       *int     `json:"repeat_last_n,omitempty" yaml:"repeat_last_n"` // tokens that the penalty looks at; -1: all, 0: none
	PresencePenalty   *float32 `json:"presence_penalty,omitempty" yaml:"presence_penalty"`
	FrequencyPenalty  *float32 `json:"frequency_penalty,omitempty" yaml:"frequency_penalty"`
}

// Plain returns a Config that changes no probability: all that is in force where nobody says
// anything.
func Plain() Config {
	return Config{
		Temperature: new(float32(1)), TopK: new(0), TopP: new(float32(1)), MinP: new(float32(0)), TypicalP: new(float32(1)),
		RepetitionPenalty: new(float32(1)), RepeatLastN: new(LastN), PresencePenalty: new(float32(0)), FrequencyPenalty: new(float32(0)),
	}
}

// LastN is how many tokens the repetition penalty looks at where nobody says: llama.cpp's and
// Ollama's number.
const LastN = 64

// field describes a field of a Config, and the values that it may have.
type field struct {
	name   string
	lo, hi float64
	number func(*Config) **float32
	whole  func(*Config) **int // in place of number
}

var fields = []field{
	{name: "temperature", hi: 2, number: func(c *Config) **float32 { return &c.Temperature }},
	{name: "top_k", hi: math.MaxInt32, whole: func(c *Config) **int { return &c.TopK }},
	{name: "top_p", hi: 1, number: func(c *Config) **float32 { return &c.TopP }},
	{name: "min_p", hi: 1, number: func(c *Config) **float32 { return &c.MinP }},
	{name: "typical_p", hi: 1, number: func(c *Config) **float32 { return &c.TypicalP }},
	{name: "repetition_penalty", lo: 0.01, hi: 10, number: func(c *Config) **float32 { return &c.RepetitionPenalty }},
	{name: "repeat_last_n", lo: -1, hi: math.MaxInt32, whole: func(c *Config) **int { return &c.RepeatLastN }},
	{name: "presence_penalty", lo: -2, hi: 2, number: func(c *Config) **float32 { return &c.PresencePenalty }},
	{name: "frequency_penalty", lo: -2, hi: 2, number: func(c *Config) **float32 { return &c.FrequencyPenalty }},
}

// Names lists the fields in the order in which they are shown.
func Names() []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// Or returns c with the fields of base that c does not name.
func (c Config) Or(base Config) Config {
	for _, f := range fields {
		if f.whole != nil {
			if to := f.whole(&c); *to == nil {
				*to = *f.whole(&base)
			}
		} else if to := f.number(&c); *to == nil {
			*to = *f.number(&base)
		}
	}
	return c
}

// Fields returns the fields that c names, as JSON has them.
func (c Config) Fields() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, f := range fields {
			x, named := f.value(&c)
			if !named {
				continue
			}
			value := any(float32(x))
			if f.whole != nil {
				value = int(x)
			}
			if !yield(f.name, value) {
				return
			}
		}
	}
}

// Unset makes c name a field no longer.
func (c *Config) Unset(name string) {
	for _, f := range fields {
		switch {
		case f.name != name:
		case f.whole != nil:
			*f.whole(c) = nil
		default:
			*f.number(c) = nil
		}
	}
}

// Text returns what c says of a field, or nothing.
func (c Config) Text(name string) string {
	for n, value := range c.Fields() {
		if n == name {
			return fmt.Sprint(value)
		}
	}
	return ""
}

// Empty reports whether c names nothing.
func (c Config) Empty() bool { return c == Config{} }

// Set sets the field of a name. Errors say what is wrong with the value.
func (c *Config) Set(name string, x float64) error {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return fmt.Errorf("there is no %q; have %s", name, strings.Join(Names(), ", "))
	}
	f := fields[i]
	if f.whole == nil {
		*f.number(c) = new(float32(x))
	} else if x == math.Trunc(x) && x >= math.MinInt32 && x <= math.MaxInt32 {
		*f.whole(c) = new(int(x))
	} else {
		return f.outside(x)
	}
	return f.check(c)
}

// value returns what c says of f.
func (f field) value(c *Config) (x float64, named bool) {
	if f.whole != nil {
		if n := *f.whole(c); n != nil {
			return float64(*n), true
		}
	} else if n := *f.number(c); n != nil {
		return float64(*n), true
	}
	return 0, false
}

func (f field) check(c *Config) error {
	x, named := f.value(c)
	lo := f.lo
	if f.number != nil {
		lo = float64(float32(lo))
	}
	if named && !(x >= lo && x <= f.hi) { // NaN is outside
		return f.outside(x)
	}
	return nil
}

func (f field) outside(x float64) error {
	if f.whole != nil {
		return fmt.Errorf("%v is not a whole number of %.0f to %.0f", x, f.lo, f.hi)
	}
	return fmt.Errorf("%v is outside %v to %v", float32(x), f.lo, f.hi)
}

// Validate reports every field that is out of bounds, each by its name and a colon.
func (c Config) Validate() error {
	var faults []error
	for _, f := range fields {
		if err := f.check(&c); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	return errors.Join(faults...)
}

// Parse reads fields as a flag has them: temperature=0.7,top_k=20.
func Parse(text string) (c Config, err error) {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		x, bad := strconv.ParseFloat(value, 64)
		if !ok || bad != nil {
			return Config{}, fmt.Errorf("found %q, want a list such as temperature=0.7,top_k=20", clip(pair))
		}
		if err := c.Set(name, x); err != nil {
			return Config{}, fmt.Errorf("%s: %w", clip(name), err)
		}
	}
	return c, nil
}

// String writes the fields that c names, as Parse reads them.
func (c Config) String() string {
	var list []string
	for name, value := range c.Fields() {
		list = append(list, fmt.Sprintf("%s=%v", name, value))
	}
	return strings.Join(list, ",")
}

// clip bounds what a message repeats of a text.
func clip(s string) string { return fmt.Sprintf("%.40s", s) }
