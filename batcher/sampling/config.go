package sampling

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Config names fields of sampling; nil fields are left to whatever it overrides:
//
//	API's default ◀── author (GGUF, generation_config.json) ◀── configuration ◀── request
//
// The names and the meanings are those in requests to /v1/chat/completions.
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
	DRYMultiplier     *float32 `json:"dry_multiplier,omitempty" yaml:"dry_multiplier"`
	DRYBase           *float32 `json:"dry_base,omitempty" yaml:"dry_base"`
	DRYAllowedLength  *int     `json:"dry_allowed_length,omitempty" yaml:"dry_allowed_length"`
	DRYPenaltyLastN   *int     `json:"dry_penalty_last_n,omitempty" yaml:"dry_penalty_last_n"` // -1: all, 0: none
	TopNSigma         *float32 `json:"top_n_sigma,omitempty" yaml:"top_n_sigma"`
	XTCProbability    *float32 `json:"xtc_probability,omitempty" yaml:"xtc_probability"`
	XTCThreshold      *float32 `json:"xtc_threshold,omitempty" yaml:"xtc_threshold"`
}

// Plain returns a Config that changes no probability: all that is in force where nobody says
// anything.
func Plain() (c Config) {
	for i := range Fields {
		Fields[i].Put(&c, Fields[i].Off)
	}
	return c
}

// Names lists the fields in the order in which they are shown.
func Names() []string {
	names := make([]string, len(Fields))
	for i := range Fields {
		names[i] = Fields[i].Name
	}
	return names
}

// Or returns c with the fields of base that c does not name.
func (c Config) Or(base Config) Config {
	for i := range Fields {
		f := &Fields[i]
		if _, named := f.get(&c); named {
			continue
		}
		if x, named := f.get(&base); named {
			f.Put(&c, x)
		}
	}
	return c
}

// Fields returns the fields that c names, as JSON has them.
func (c Config) Fields() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range Fields {
			f := &Fields[i]
			x, named := f.get(&c)
			value := any(float32(x))
			if f.Whole() {
				value = int(x)
			}
			if named && !yield(f.Name, value) {
				return
			}
		}
	}
}

// Unset makes c name a field no longer.
func (c *Config) Unset(name string) {
	if f := Named(name); f != nil {
		f.unset(c)
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
	f := Named(name)
	if f == nil {
		return fmt.Errorf("there is no %q; have %s", name, strings.Join(Names(), ", "))
	}
	if f.Whole() && (x != math.Trunc(x) || x < math.MinInt32 || x > math.MaxInt32) {
		return f.outside(x)
	}
	f.Put(c, x)
	return f.check(c)
}

// Named returns the field of a name, nil if there is none.
func Named(name string) *Field {
	if i := slices.IndexFunc(Fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return &Fields[i]
	}
	return nil
}

// get returns the number that c has.
func (f *Field) get(c *Config) (x float64, named bool) {
	switch v := f.config(c).(type) {
	case **int:
		if *v != nil {
			return float64(**v), true
		}
	case **float32:
		if *v != nil {
			return float64(**v), true
		}
	}
	return 0, false
}

// Put gives c a number.
func (f *Field) Put(c *Config, x float64) {
	switch v := f.config(c).(type) {
	case **int:
		*v = new(int(x))
	case **float32:
		*v = new(float32(x))
	}
}

// unset leaves the number of c to what it overrides.
func (f *Field) unset(c *Config) {
	switch v := f.config(c).(type) {
	case **int:
		*v = nil
	case **float32:
		*v = nil
	}
}

func (f *Field) check(c *Config) error {
	x, named := f.get(c)
	lo := f.Lo
	if !f.Whole() {
		lo = float64(float32(lo))
	}
	if named && !(x >= lo && x <= f.Hi) { // NaN is outside
		return f.outside(x)
	}
	return nil
}

func (f *Field) outside(x float64) error {
	if f.Whole() {
		return fmt.Errorf("%v is not a whole number of %.0f to %.0f", x, f.Lo, f.Hi)
	}
	return fmt.Errorf("%v is outside %v to %v", float32(x), f.Lo, f.Hi)
}

// Validate reports every field that is out of bounds, each by its name and a colon.
func (c Config) Validate() error {
	var faults []error
	for i := range Fields {
		if err := Fields[i].check(&c); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", Fields[i].Name, err))
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

// Apply has p sample as c says, and plainly where c says nothing.
func (c Config) Apply(p *Params) {
	c = c.Or(Plain())
	for i := range Fields {
		x, _ := Fields[i].get(&c)
		Fields[i].SetValue(p, x)
	}
	if !p.repeats() || p.RepetitionWindow == 0 {
		p.RepetitionPenalty, p.RepetitionWindow = 0, 0
	}
	p.RepetitionWindow = max(p.RepetitionWindow, 0)
	if p.DRYWindow == 0 {
		p.DRYMultiplier = 0
	}
	p.DRYWindow = max(p.DRYWindow, 0)
}

// ConfigOf returns how p samples: the temperature, and what is not plain beside it.
func ConfigOf(p *Params) (c Config) {
	for i := range Fields {
		f := &Fields[i]
		switch v := f.param(p).(type) {
		case *int:
			if *v != 0 && float64(*v) != f.Off {
				f.Put(&c, float64(*v))
			}
		case *float32:
			if f.greedy || *v != 0 && *v != float32(f.Off) {
				f.Put(&c, float64(*v))
			}
		}
	}
	if c.RepeatLastN = nil; c.RepetitionPenalty != nil {
		c.RepeatLastN = new(p.RepetitionWindow)
		if p.RepetitionWindow == 0 {
			*c.RepeatLastN = -1
		}
	}
	return c
}
