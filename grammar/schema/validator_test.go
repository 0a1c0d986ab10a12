package schema

import (
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validator checks texts against a schema, formats included.
func validator(t *testing.T, text string) func(instance string) error {
	t.Helper()
	check, err := validates(text)
	if err != nil {
		t.Fatal(err)
	}
	return check
}

// validates is validator for schemas that may be faulty.
func validates(text string) (func(instance string) error, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := regexp2.Compile(pattern, regexp2.ECMAScript|regexp2.Unicode)
		return (*ecma)(re), err
	})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		return nil, err
	}
	return func(instance string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(instance))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}, nil
}

// ecma is a pattern as the validator wants it.
type ecma regexp2.Regexp

func (e *ecma) MatchString(text string) bool {
	ok, err := (*regexp2.Regexp)(e).MatchString(text)
	return ok && err == nil
}

func (e *ecma) String() string { return (*regexp2.Regexp)(e).String() }
