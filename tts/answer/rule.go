package answer

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// ErrRule says that a Rule's fields cannot be used.
var ErrRule = errors.New("answer: bad rule")

// Rule says where an answer stands and what makes two of them equal. The zero
// value is auto and math.
type Rule struct {
	// Extract is one of
	//
	//	auto           boxed, else answer, else number (the default)
	//	boxed          the last \boxed{…}
	//	answer         what follows the last "Answer:" or "answer is", up to the line's end
	//	number         the last number
	//	choice         a letter A to E
	//	line           the last line that is not blank
	//	regex:EXPR     the first group of the last match, or all of it (RE2 syntax)
	//	json:/POINTER  a value (RFC 6901) in the last JSON object or array that has it
	Extract string
	// Normalize is math (the default; numbers, formulas and lists of them are compared by their value), text
	// (case, white space and outer punctuation are ignored) or none.
	Normalize string
}

// Answer is one answer.
type Answer struct {
	Text string // as it stands in the solution
	Key  string // equal for equal answers
}

// Reader applies a Rule. It is safe for concurrent use.
type Reader struct {
	extract func(text string) (string, bool)
	key     func(answer string) string
}

// A regular expression takes time for each byte of a text and each of its
// instructions: both its length, in bytes, and what it compiles to are bounded.
const (
	maxRegex   = 512  // of a JSON pointer too
	maxProgram = 1000 // instructions; x{1000} alone is as many
)

// CompileRegex compiles expressions that nobody vouches for.
func CompileRegex(expr string) (*regexp.Regexp, error) {
	if len(expr) > maxRegex {
		return nil, fmt.Errorf("%w: a regular expression of %d bytes, at most %d are read", ErrRule, len(expr), maxRegex)
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRule, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRule, err)
	}
	if n := len(program.Inst); n > maxProgram {
		return nil, fmt.Errorf("%w: the regular expression is too large: its repetitions make %d instructions, at most %d are allowed", ErrRule, n, maxProgram)
	}
	return regexp.Compile(expr)
}

// Compile checks the rule.
func (r Rule) Compile() (*Reader, error) {
	var out Reader
	name, arg, _ := strings.Cut(r.Extract, ":")
	switch name {
	case "", "auto":
		out.extract = auto
	case "boxed":
		out.extract = boxed
	case "answer":
		out.extract = labelled
	case "number":
		out.extract = lastNumber
	case "choice":
		out.extract = choice
	case "line":
		out.extract = lastLine
	case "regex":
		re, err := CompileRegex(arg)
		if err != nil {
			return nil, err
		}
		out.extract = func(text string) (string, bool) { return lastMatch(re, text) }
	case "json":
		if len(arg) > maxRegex {
			return nil, fmt.Errorf("%w: a JSON pointer of %d bytes, at most %d are read", ErrRule, len(arg), maxRegex)
		}
		if arg != "" && arg[0] != '/' {
			return nil, fmt.Errorf("%w: the JSON pointer %q does not begin with a slash", ErrRule, arg)
		}
		out.extract = func(text string) (string, bool) { return lastJSON(text, arg) }
	default:
		return nil, fmt.Errorf("%w: unknown extraction %q", ErrRule, name)
	}
	if arg != "" && name != "regex" && name != "json" {
		return nil, fmt.Errorf("%w: extraction %q takes nothing after a colon", ErrRule, name)
	}
	switch r.Normalize {
	case "", "math":
		out.key = mathKey
	case "text":
		out.key = textKey
	case "none":
		out.key = strings.TrimSpace
	default:
		return nil, fmt.Errorf("%w: unknown normalisation %q", ErrRule, r.Normalize)
	}
	return &out, nil
}

// Read finds the answer in a solution; false when there is none.
func (r *Reader) Read(text string) (Answer, bool) {
	s, ok := r.extract(text)
	if !ok {
		return Answer{}, false
	}
	a := Answer{Text: strings.TrimSpace(s)}
	a.Key = r.key(a.Text)
	return a, a.Key != ""
}

// Key returns the key of an answer written alone, such as a reference.
func (r *Reader) Key(answer string) string { return r.key(strings.TrimSpace(answer)) }
