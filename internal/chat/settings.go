package chat

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// byDefault is the value that takes a setting back.
const byDefault = "default"

// setting is a value that /set changes.
type setting struct {
	name, words string
	offers      []string // values, for the completion
	// set takes a value, or byDefault.
	set func(c *session, value string) error
	// now returns the value; empty: the default.
	now func(o *Options) string
}

// settings lists all of them, by the names that OpenAI's API and vLLM's use.
func settings() []setting {
	var list []setting
	for i := range sampling.Fields {
		f := &sampling.Fields[i]
		list = append(list, sampled(f.Name, f.Range()+"; "+f.Doc))
	}
	return append(list, []setting{
		{name: "max_tokens", words: "tokens of an answer at most; 0: up to the context", set: setMaxTokens, now: nowMaxTokens},
		{name: "seed", words: "of the sampling", set: setSeed, now: func(o *Options) string { return shown(o.Seed, 0) }},
		{name: "stop", words: `a text that ends an answer, or a JSON list: ["\n\n", "END"]`, set: setStop, now: nowStop},
		{name: "thinking", words: "on or off, if the chat template can switch it", offers: []string{"on", "off"}, set: setThinking, now: nowThinking},
		{name: "method", words: "of test-time scaling: " + strings.Join(scaling.Names(), ", "), offers: scaling.Names(), set: setMethod,
			now: func(o *Options) string { return string(o.plan().Method) }},
		{name: "n", words: "candidates of a search", set: func(c *session, value string) error { return c.setOfPlan("n", value) },
			now: func(o *Options) string { return shown(o.plan().N, 0) }},
		{name: "width", words: "of a beam search", set: func(c *session, value string) error { return c.setOfPlan("width", value) },
			now: func(o *Options) string { return shown(o.plan().Width, 0) }},
	}...)
}

// settingNamed finds a setting.
func settingNamed(name string) (*setting, error) {
	var names []string
	for _, s := range settings() {
		if s.name == name {
			return &s, nil
		}
		names = append(names, s.name)
	}
	hint := usage.DidYouMean(name, names)
	if hint == "" {
		hint = "; /set lists them"
	}
	return nil, fmt.Errorf("there is no setting %q%s", usage.Brief(name), hint)
}

func shown[T comparable](value, none T) string {
	if value == none {
		return ""
	}
	return fmt.Sprint(value)
}

// sampled is a setting of how answers are sampled. Its default is the model's.
func sampled(name, words string) setting {
	return setting{name: name, words: words, now: func(o *Options) string { return o.Sampling.Text(name) },
		set: func(c *session, value string) error {
			if value == byDefault {
				c.options.Sampling.Unset(name)
				return nil
			}
			x, err := strconv.ParseFloat(value, 32)
			if err != nil {
				return fmt.Errorf("%q is not a number", usage.Brief(value))
			}
			changed := c.options.Sampling
			if err = changed.Set(name, x); err == nil {
				c.options.Sampling = changed
			}
			return err
		}}
}

func setMaxTokens(c *session, value string) error {
	if value == byDefault {
		c.options.MaxTokens = nil
		return nil
	}
	x, err := strconv.Atoi(value)
	if err != nil || x < 0 || x > math.MaxInt32 {
		return fmt.Errorf("%q is not a whole number of 0 to %d", usage.Brief(value), math.MaxInt32)
	}
	c.options.MaxTokens = &x
	return nil
}

func nowMaxTokens(o *Options) string {
	if o.MaxTokens == nil {
		return ""
	}
	return strconv.Itoa(*o.MaxTokens)
}

func setSeed(c *session, value string) error {
	if value == byDefault {
		value = "0"
	}
	seed, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		return fmt.Errorf("%q is not a whole number, not negative", usage.Brief(value))
	}
	c.options.Seed = seed
	return nil
}

// maxStops is the most stop strings that OpenAI's API takes.
const maxStops = 4

func setStop(c *session, value string) error {
	var list []string
	switch {
	case value == byDefault:
	case strings.HasPrefix(value, "["):
		if err := json.Unmarshal([]byte(value), &list); err != nil || len(list) > maxStops || slices.Contains(list, "") {
			return fmt.Errorf("want a JSON list of at most %d texts", maxStops)
		}
	default:
		list = []string{value}
	}
	c.options.Stop = list
	return nil
}

func nowStop(o *Options) string {
	if len(o.Stop) == 0 {
		return ""
	}
	text, _ := json.Marshal(o.Stop) // texts can be written
	return string(text)
}

func setThinking(c *session, value string) error {
	switch value {
	case byDefault:
		c.options.Thinking = nil
	case "on", "off":
		c.options.Thinking = new(value == "on")
	default:
		return fmt.Errorf("%q is none of on, off, %s", usage.Brief(value), byDefault)
	}
	return nil
}

func nowThinking(o *Options) string {
	switch {
	case o.Thinking == nil:
		return ""
	case *o.Thinking:
		return "on"
	}
	return "off"
}
