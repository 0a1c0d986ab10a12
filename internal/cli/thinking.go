package cli

import "github.com/spf13/pflag"

// ThinkingVar defines --thinking: whether models think whose chat template can
// switch it. Without the flag on stays nil.
func ThinkingVar(f *pflag.FlagSet, on **bool) {
	t := thinkingValue{on: on}
	t.wordValue = wordValue{&t.word, []string{"on", "off"}}
	f.Var(&t, "thinking", "on or off, for models whose chat template can switch it (default: as the template has it)")
}

// thinkingValue is one of two words, and what they mean.
type thinkingValue struct {
	wordValue
	word string
	on   **bool
}

func (t *thinkingValue) Set(text string) error {
	if err := t.wordValue.Set(text); err != nil {
		return err
	}
	*t.on = new(text == "on")
	return nil
}
