package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/grammar/budget"
)

// The steps and bytes of a validation that is to be refused for what it takes.
const (
	fewSteps = 1 << 19
	fewBytes = 2 << 20
)

func TestAValidatorIsBounded(t *testing.T) {
	numbers := "[" + many(5000, func(i int) string { return fmt.Sprint(i) }) + "]"
	for name, c := range map[string]struct{ schema, text, want string }{
		"large classes":      {`{"allOf":[` + many(2000, func(int) string { return `{"pattern":"^\\p{L}{900}$"}` }) + `]}`, "", "too complex"},
		"a class of classes": {`{"pattern":"[` + strings.Repeat(`\\p{L}\\p{N}`, 3000) + `]"}`, "", "too complex"},
		"folded classes":     {`{"pattern":"(?i)` + strings.Repeat("[a]", 5000) + `"}`, "", "too complex"},
		"numbers":            {`{"maximum":7.1e999990}`, "", "out of range"},
		"a number":           {`{"maximum":7.1}`, "7.1e999990", "out of range"},
		"depth":              {`{}`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "deeper"},
		"2^40 ways": {`{"$ref":"#/$defs/a0","$defs":{` + many(40, func(i int) string {
			return fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i+1, i+1)
		}) + `,"a40":{}}}`, "1", "too complex"},
		"a schema of itself":   {`{"$ref":"#"}`, "1", "refers to itself"},
		"a long chain":         {`{"$ref":"#/$defs/a0","$defs":{` + many(5000, func(i int) string { return fmt.Sprintf(`"a%d":{"$ref":"#/$defs/a%d"}`, i, i+1) }) + `,"a5000":{}}}`, "1", "within each other"},
		"keys of values":       {`{"uniqueItems":true}`, "[" + many(200, func(i int) string { return fmt.Sprintf(`"%020000d"`, i) }) + "]", "too large"},
		"patterns times names": {`{"patternProperties":{` + many(500, func(i int) string { return fmt.Sprintf(`"a%d":true`, i) }) + `}}`, "{" + many(5000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + "}", "too complex"},
		"a slow pattern":       {`{"pattern":"(a|b)*a(a|b){500}$"}`, `"` + strings.Repeat("abbabaab", 2000) + `"`, "too complex"},
		"a $ref to nowhere":    {`{"$ref":"other.json"}`, "", "not fetched"},
		"no type":              {`{"type":7}`, "", "type"},
		"no schema":            {`{"items":{"not":7}}`, "", "schema"},
		"an unknown keyword":   {`{"$dynamicRef":"#"}`, "", "$dynamicRef"},
		"no JSON":              {`{}`, "{", "EOF"},
		"contains":             {`{"contains":{"const":-1}}`, numbers, "contains"},
	} {
		v, err := NewValidator([]byte(c.schema), budget.New(t.Context(), fewSteps, fewBytes, nil))
		if err == nil && c.text != "" {
			err = v.Validate([]byte(c.text), budget.New(t.Context(), fewSteps, fewBytes, nil))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v, want an error with %q", name, err, c.want)
		}
	}
}

func TestAValidationEndsWithItsContext(t *testing.T) {
	v := held(t, `{"items":{"type":"integer"}}`)
	gone, cancel := context.WithCancelCause(t.Context())
	left := errors.New("left")
	cancel(left)
	text := "[" + many(5000, func(i int) string { return fmt.Sprint(i) }) + "]"
	if err := v.Validate([]byte(text), budget.New(gone, budget.Steps, budget.Bytes, nil)); !errors.Is(err, left) {
		t.Errorf("%v, want the context's end", err)
	}
}

func TestAValidatorIsForManyAtOnceAndForgetsEachText(t *testing.T) {
	v := held(t, `{"type":"array","uniqueItems":true,"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"pattern":"^a+$","enum":["a","aa","b"]}}}`)
	spent := make([]int64, 8)
	var all sync.WaitGroup
	for i := range spent {
		all.Go(func() {
			b := budget.Default()
			var m *Mismatch
			if err := v.Validate([]byte(`["a","aa","b"]`), b); !errors.As(err, &m) || err.Error() != `/2: "b" does not meet pattern "^a+$"` {
				t.Errorf("%v", err)
			}
			spent[i] = b.Spent()
		})
	}
	all.Wait()
	for _, n := range spent {
		if n != spent[0] {
			t.Errorf("validations of one text take %v steps", spent)
		}
	}
}
