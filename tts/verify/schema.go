package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// schema validates the JSON of an answer. Its score is 1 or 0.
type schema struct {
	mu     sync.Mutex // one validation at a time: steps is its
	schema *jsonschema.Schema
	steps  int
}

// mostSteps bounds the work of a validation, in schemas that are applied.
const mostSteps = 100_000

// place is the name of the request's schema among schemas.
const place = "http://lutra.invalid/schema"

func newSchema(text string) (Check, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fault("json_schema", "it is no JSON: %v", err)
	}
	s := &schema{}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "lutra:steps", Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
		return (*counted)(s), nil
	}})
	c.AssertVocabs()
	if err = c.AddResource(place, doc); err == nil {
		s.schema, err = c.Compile(place)
	}
	if err != nil {
		return nil, fault("json_schema", "it cannot be used: %s", reason(err))
	}
	return s, nil
}

// nowhere loads no schemas: a request's has all that it refers to.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("%.80q is another schema, and none is loaded", url)
}

// counted counts the schemas that a validation applies.
type counted schema

var errSteps = errors.New("verify: the schema takes too many steps")

func (s *counted) Validate(*jsonschema.ValidatorContext, any) {
	if s.steps++; s.steps > mostSteps {
		panic(errSteps)
	}
}

// Check implements Check. The JSON is all of the answer, or its last fenced block.
func (s *schema) Check(_ context.Context, answer string) (Verdict, error) {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.TrimSpace(lastBlock(answer))))
	if err != nil {
		return Verdict{0, "no JSON"}, nil
	}
	if err := s.validate(v); err != nil {
		return Verdict{0, reason(err)}, nil
	}
	return Verdict{1, "it matches the schema"}, nil
}

func (s *schema) validate(v any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if r := recover(); r == errSteps {
			err = errSteps
		} else if r != nil {
			panic(r)
		}
	}()
	s.steps = 0
	return s.schema.Validate(v)
}

// reason returns what is wrong first, in a line.
func reason(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return cut(strings.TrimPrefix(err.Error(), "verify: "))
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	if _, ok := invalid.ErrorKind.(*kind.FalseSchema); ok {
		return cut("/" + strings.Join(invalid.InstanceLocation, "/") + " is not allowed")
	}
	return cut("/" + strings.Join(invalid.InstanceLocation, "/") + ": " + invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// mostWords bounds a verdict's words in bytes.
const mostWords = 300

// cut makes a short line of a text.
func cut(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	if len(s) > mostWords {
		s = strings.ToValidUTF8(s[:mostWords], "") + "…"
	}
	return s
}
