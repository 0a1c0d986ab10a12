package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/usage"
)

// flagError describes pflag's errors in the words of configuration errors, with suggestions.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		if say, ok := otherFlags[unknown.GetSpecifiedName()]; ok {
			return usage.Errorf("unknown flag --%s; %s", unknown.GetSpecifiedName(), say)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if best := usage.DidYouMean(unknown.GetSpecifiedName(), names); best != "" {
			return usage.Errorf("unknown flag --%s%s", unknown.GetSpecifiedName(), strings.Replace(best, "mean ", "mean --", 1))
		}
		return usage.Errorf("unknown flag --%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		if say, ok := otherFlags[unknown.GetSpecifiedShortnames()]; ok {
			return usage.Errorf("unknown flag -%s; %s", unknown.GetSpecifiedShortnames(), say)
		}
		return usage.Errorf("unknown flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		return usage.Errorf("--%s: has no value, want %s", missing.GetFlag().Name, wantedFlag(missing.GetFlag()))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		var word notAWord
		_, number := strconv.ParseFloat(invalid.GetValue(), 64)
		switch {
		case errors.As(err, &word):
			return usage.Errorf("--%s: %w", f.Name, word)
		case f.Value.Type() == "duration" && number == nil:
			return usage.Errorf("--%s: %w", f.Name, usage.NoUnit(invalid.GetValue()))
		}
		return usage.Errorf("--%s: found %q, want %s", f.Name, usage.Brief(invalid.GetValue()), wantedFlag(f))
	}
	return usage.Error{Err: err}
}

// wantedFlag describes the values of a flag.
func wantedFlag(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int64":
		return "a whole number"
	case "uint64":
		return "a whole number, not negative"
	case "float32", "float64":
		return "a number"
	case "duration":
		return usage.Duration
	case "intSlice":
		return "whole numbers, separated by commas"
	case "stringSlice":
		return "words, separated by commas"
	}
	if name, _ := pflag.UnquoteUsage(f); name != "" && name != "string" && name != "stringArray" {
		return name
	}
	return "text"
}

// notAWord means that a flag takes only certain words.
type notAWord struct{ error }

// NotAWord returns err as the error of a flag that takes only certain words, which err lists.
func NotAWord(err error) error { return notAWord{err} }

// wordValue is a flag that takes one of several words.
type wordValue struct {
	p     *string
	words []string
}

func (w wordValue) String() string {
	if w.p == nil {
		return ""
	}
	return *w.p
}
func (w wordValue) Type() string      { return "string" }
func (w wordValue) Choices() []string { return w.words }
func (w wordValue) Set(s string) error {
	if !slices.Contains(w.words, s) {
		return notAWord{fmt.Errorf("%q is none of %s%s", usage.Brief(s), strings.Join(w.words, ", "), usage.DidYouMean(s, w.words))}
	}
	*w.p = s
	return nil
}

// WordVar defines a flag that takes one of words.
func WordVar(f *pflag.FlagSet, p *string, name, value string, words []string, usage string) {
	*p = value
	f.Var(wordValue{p, words}, name, usage+": "+strings.Join(words, ", "))
}

// upTo takes at most one argument, of that name.
func upTo(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return Arguments(name)(cmd, args)
	}
}

// Arguments requires one argument for each name.
func Arguments(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage.Errorf("%s is missing", names[len(args)])
		case len(names) == 0 && len(args) > 0:
			return usage.Errorf("takes no arguments, got %q", usage.Brief(args[0]))
		case len(args) > len(names):
			return usage.Errorf("takes one argument, got %d; put it in quotes: %q", len(args), usage.Brief(strings.Join(args, " ")))
		}
		return nil
	}
}

// elsewhere are commands of other programs for models, and what does the same here.
var elsewhere = map[string]string{
	"generate": "lutra ask asks a model one question",
	"prompt":   "lutra ask asks a model one question",
	"start":    "lutra serve serves models",
	"server":   "lutra serve serves models",
	"ls":       "lutra list lists the models on this machine, lutra list --catalogue those to download",
	"models":   "lutra list lists the models on this machine, lutra list --catalogue those to download",
	"search":   "lutra list --catalogue lists models to download",
	"show":     "lutra info FILE shows what a model's file holds",
	"inspect":  "lutra info FILE shows what a model's file holds",
	"download": "lutra pull NAME downloads a model",
	"get":      "lutra pull NAME downloads a model",
	"remove":   "lutra rm NAME deletes a model",
	"delete":   "lutra rm NAME deletes a model",
}

// Subcommand checks the arguments of a command that only has subcommands.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := usage.DidYouMean(args[0], commandNames(cmd))
	if say, ok := elsewhere[args[0]]; ok && cmd == cmd.Root() {
		hint = "; " + say
	}
	return usage.Errorf("unknown command %q%s", usage.Brief(args[0]), hint)
}
