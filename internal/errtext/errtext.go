// Package errtext words errors for those who use the program: without the names of the Go
// packages that they come from, which help only those who write it.
package errtext

import (
	"fmt"
	"slices"
	"strings"
)

// packages are the names that errors of this module begin with. A test compares them
// with the source.
var packages = []string{
	"ablation", "admission", "answer", "batcher", "config", "convert", "cpu", "cpulimit", "doctor", "embed", "embedded", "eval", "experts", "gbnf", "gguf", "grammar",
	"hexagon", "huggingface", "jinja", "jobs", "jsonread", "kernels", "kv", "kvevents", "manual", "matrices", "memory", "models", "moecost", "mutate", "npu", "offload", "probe", "profile", "quantize", "regex",
	"replay", "residency", "responses", "reward", "sampling", "sandbox", "scaling", "schema", "search", "server", "settings", "soak", "soc", "structure", "synthetic", "template", "ternary",
	"tiles", "tiling", "timeline", "tokenizer", "toy", "tts", "verify", "web", "weights", "workers", "zmtp",
}

// Text returns what err says, without names of packages before it or before the errors
// that it wraps.
func Text(err error) string {
	text := err.Error()
	for _, inner := range wrapped(err) {
		if said, clean := inner.Error(), Text(inner); said != clean {
			text = strings.Replace(text, said, clean, 1)
		}
	}
	if _, ok := err.(keyed); ok {
		return text
	}
	return WithoutPackage(text)
}

// Sprintf formats as fmt.Sprintf does, with the Text of errors among args.
func Sprintf(format string, args ...any) string {
	for i := range args {
		if err, ok := args[i].(error); ok {
			args[i] = Text(err)
		}
	}
	return fmt.Sprintf(format, args...)
}

func wrapped(err error) []error {
	switch e := err.(type) {
	case keyed:
		return wrapped(e.error) // which has the same text
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	}
	return nil
}

// WithoutPackage takes the names of packages away that text begins with.
func WithoutPackage(text string) string {
	for {
		name, rest, ok := strings.Cut(text, ": ")
		if !ok || !slices.Contains(packages, name) {
			return text
		}
		text = rest
	}
}

// keyed is an error that begins with a key of the user's.
type keyed struct{ error }

func (k keyed) Unwrap() error { return k.error }

// Keyed marks an error whose text begins with the name of a setting, such as server: it
// is the user's word, though a package may be called the same.
func Keyed(err error) error {
	if err == nil {
		return nil
	}
	return keyed{err}
}
