package sampling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Field describes a number that decides how tokens are drawn. Whatever reads or writes such numbers
// goes through Fields: requests of all APIs, configuration, files of models, receipts, workers and
// model cards.
type Field struct {
	Name   string  // in requests, receipts, configuration, flags and model cards
	Lo, Hi float64 // what requests and configuration may say
	Off    float64 // changes no probability; where Qualifies, the default
	Most   float32 // bounds the size of the number in Params
	Doc    string  // for docs/api.md and the settings of a chat

	GGUF      string  // what follows gguf.SamplingPrefix; empty: files do not have it
	Ollama    string  // among the parameters of Ollama's models
	VLLM      int     // place among vLLM's parameters; 0: it has no such field
	Anthropic float64 // the largest that Anthropic's API takes, from 0; 0: it has no such field
	MinusOne  bool    // requests write 0 as -1, too: vLLM's word for off

	config func(*Config) any // a **float32 or a **int
	param  func(*Params) any // a *float32 or a *int
	// Qualifies says that the field matters only if another one is on.
	Qualifies bool
	// greedy says that 0 in Params is a value of its own. Of other fields it changes nothing.
	greedy bool
	// zero stands in Params for a 0 that changes something.
	zero float32
}

// LastN is the default number of tokens that the repetition penalty looks at: llama.cpp's and Ollama's.
const LastN = 64

// Fields lists all fields, in the order in which they are shown.
var Fields = []Field{
	{Name: "temperature", Hi: 2, Off: 1, Most: 100, Doc: "0: the likeliest token", GGUF: "temp", Ollama: "temperature", VLLM: 1, Anthropic: 1, greedy: true,
		config: func(c *Config) any { return &c.Temperature }, param: func(p *Params) any { return &p.Temperature }},
	{Name: "top_k", Hi: math.MaxInt32, Most: math.MaxInt32, Doc: "the k likeliest tokens alone; 0: all", GGUF: "top_k", Ollama: "top_k", VLLM: 3, Anthropic: math.MaxInt32, MinusOne: true,
		config: func(c *Config) any { return &c.TopK }, param: func(p *Params) any { return &p.TopK }},
	{Name: "top_p", Hi: 1, Off: 1, Most: 1, Doc: "the likeliest tokens that reach this probability together", GGUF: "top_p", Ollama: "top_p", VLLM: 2, Anthropic: 1, zero: math.SmallestNonzeroFloat32,
		config: func(c *Config) any { return &c.TopP }, param: func(p *Params) any { return &p.TopP }},
	{Name: "min_p", Hi: 1, Most: 1, Doc: "tokens at least this share as likely as the likeliest", GGUF: "min_p", Ollama: "min_p", VLLM: 4,
		config: func(c *Config) any { return &c.MinP }, param: func(p *Params) any { return &p.MinP }},
	{Name: "typical_p", Hi: 1, Off: 1, Most: 1, Doc: "the tokens nearest to the expected surprise that reach this probability together", Ollama: "typical_p",
		config: func(c *Config) any { return &c.TypicalP }, param: func(p *Params) any { return &p.TypicalP }},
	{Name: "repetition_penalty", Lo: 0.01, Hi: 10, Off: 1, Most: 100, Doc: "divides logits of tokens that prompt or answer have", GGUF: "penalty_repeat", Ollama: "repeat_penalty", VLLM: 7,
		config: func(c *Config) any { return &c.RepetitionPenalty }, param: func(p *Params) any { return &p.RepetitionPenalty }},
	{Name: "repeat_last_n", Qualifies: true, Lo: -1, Hi: math.MaxInt32, Off: LastN, Most: math.MaxInt32, Doc: "tokens that the repetition penalty looks back at; -1: all, 0: none", GGUF: "penalty_last_n", Ollama: "repeat_last_n",
		config: func(c *Config) any { return &c.RepeatLastN }, param: func(p *Params) any { return &p.RepetitionWindow }},
	{Name: "presence_penalty", Lo: -2, Hi: 2, Most: 100, Doc: "subtracted once from logits of tokens that the answer has", Ollama: "presence_penalty", VLLM: 5,
		config: func(c *Config) any { return &c.PresencePenalty }, param: func(p *Params) any { return &p.PresencePenalty }},
	{Name: "frequency_penalty", Lo: -2, Hi: 2, Most: 100, Doc: "subtracted from logits of tokens for each time that the answer has them", Ollama: "frequency_penalty", VLLM: 6,
		config: func(c *Config) any { return &c.FrequencyPenalty }, param: func(p *Params) any { return &p.FrequencyPenalty }},
	{Name: "dry_multiplier", Hi: 100, Most: 100, Doc: "llama.cpp's DRY: the penalty for a token that continues a repetition; 0.8 is usual",
		config: func(c *Config) any { return &c.DRYMultiplier }, param: func(p *Params) any { return &p.DRYMultiplier }},
	{Name: "dry_base", Qualifies: true, Lo: 0.01, Hi: 10, Off: dryBase, Most: 100, Doc: "each further token of the repetition multiplies the penalty by this",
		config: func(c *Config) any { return &c.DRYBase }, param: func(p *Params) any { return &p.DRYBase }},
	{Name: "dry_allowed_length", Qualifies: true, Lo: 1, Hi: math.MaxInt32, Off: dryAllowed, Most: math.MaxInt32, Doc: "tokens of a repetition from which on DRY counts it",
		config: func(c *Config) any { return &c.DRYAllowedLength }, param: func(p *Params) any { return &p.DRYAllowedLength }},
	{Name: "dry_penalty_last_n", Qualifies: true, Lo: -1, Hi: math.MaxInt32, Off: -1, Most: math.MaxInt32, Doc: "tokens that DRY looks back at; -1: all, 0: none",
		config: func(c *Config) any { return &c.DRYPenaltyLastN }, param: func(p *Params) any { return &p.DRYWindow }},
	{Name: "top_n_sigma", Hi: 100, Most: 100, Doc: "tokens whose logits are at most that many standard deviations below the largest; 0: all", MinusOne: true,
		config: func(c *Config) any { return &c.TopNSigma }, param: func(p *Params) any { return &p.TopNSigma }},
	{Name: "xtc_probability", Hi: 1, Most: 1, Doc: "XTC: how often all but the least likely of the tokens that reach `xtc_threshold` are left out", GGUF: "xtc_probability",
		config: func(c *Config) any { return &c.XTCProbability }, param: func(p *Params) any { return &p.XTCProbability }},
	{Name: "xtc_threshold", Qualifies: true, Hi: 1, Off: 0.1, Most: 1, Doc: "a probability; above 0.5 XTC is off", GGUF: "xtc_threshold", zero: math.SmallestNonzeroFloat32,
		config: func(c *Config) any { return &c.XTCThreshold }, param: func(p *Params) any { return &p.XTCThreshold }},
}

// Whole tells whether the number is an integer.
func (f *Field) Whole() bool {
	_, whole := f.param(new(Params)).(*int)
	return whole
}

// Range returns Lo and Hi in words.
func (f *Field) Range() string {
	if f.Hi == math.MaxInt32 {
		return fmt.Sprintf("%v up", f.Lo)
	}
	return fmt.Sprintf("%v to %v", f.Lo, f.Hi)
}

// VLLM returns the fields in the order of vLLM's parameters, with those at the end that it lacks.
func VLLM() []Field {
	list := slices.Clone(Fields)
	slices.SortStableFunc(list, func(a, b Field) int {
		return cmp.Or(cmp.Compare(min(b.VLLM, 1), min(a.VLLM, 1)), cmp.Compare(a.VLLM, b.VLLM))
	})
	return list
}

// Value returns the number in force as requests and receipts write it, an int or a float32; of
// repeat_last_n, 0 for all tokens.
func (f *Field) Value(p *Params) any {
	switch v := f.param(p).(type) {
	case *float32:
		switch {
		case *v == 0 && !f.greedy:
			return float32(f.Off)
		case *v <= f.zero && f.zero > 0:
			return float32(0)
		}
		return *v
	case *int:
		if *v == 0 && f.Lo > 0 {
			return int(f.Off)
		}
		return *v
	}
	panic("a field of sampling is neither an int nor a float32")
}

// Append adds the number in force to the members of a JSON object.
func (f *Field) Append(object []byte, p *Params) []byte {
	value, err := json.Marshal(f.Value(p))
	if err != nil {
		panic(err) // Params.Validate lets no such number through
	}
	return fmt.Appendf(object, ",%q:%s", f.Name, value)
}

// SetValue sets the number to one that Value has returned.
func (f *Field) SetValue(p *Params, x float64) {
	switch v := f.param(p).(type) {
	case *int:
		*v = int(x)
	case *float32:
		if *v = float32(x); x == 0 {
			*v = f.zero
		}
	}
}

// Copy sets the number to the one of another.
func (f *Field) Copy(to, from *Params) {
	switch v := f.param(to).(type) {
	case *int:
		*v = *f.param(from).(*int)
	case *float32:
		*v = *f.param(from).(*float32)
	}
}

// Requested tells whether requests may have the number that is in force.
func (f *Field) Requested(p *Params) bool {
	if n, whole := f.param(p).(*int); whole {
		return *n == 0 && f.Lo > 0 || float64(*n) >= f.Lo && float64(*n) <= f.Hi
	}
	x := *f.param(p).(*float32)
	return x == 0 || x >= float32(f.Lo) && x <= float32(f.Hi) // false for NaN
}

// validate reports a number that no sampler can use.
func (f *Field) validate(p *Params) error {
	var x, lo float32
	switch v := f.param(p).(type) {
	case *int:
		x = float32(*v)
	case *float32:
		if x = *v; f.Lo < 0 {
			lo = -f.Most
		}
	}
	if !(x >= lo && x <= f.Most) { // NaN is outside
		return fmt.Errorf("%s %v is not in [%v, %v]", f.Name, x, lo, f.Most)
	}
	return nil
}
