package schema

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar/grammartest"
)

func TestWhatIsNotValidIsNotAccepted(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct{ schema, valid, invalid string }{
		{`{"format": "hostname"}`, `"` + long[1:] + `.a-b.x"`, `"` + long + `"`},
		{`{"format": "hostname"}`, `"a-1--b"`, `"ab--c"`},
		{`{"format": "hostname"}`, `"` + strings.Repeat("a-", 31) + `a"`, `"` + strings.Repeat("a-", 32) + `a"`},
		{`{"format": "email"}`, `"x@` + long[1:] + `"`, `"x@` + long + `"`},
		{`{"format": "email"}`, `"` + long + `@y"`, `"x@y.` + strings.Repeat("a-", 40) + `a"`},
		{`{"exclusiveMinimum": 5}`, `5.1`, `5.000000000000000000000001`},
		{`{"exclusiveMaximum": 5}`, `4.9`, `4.999999999999999999999999`},
		{`{"exclusiveMinimum": -5, "type": "number"}`, `-4.99`, `-4.999999999999999999999999`},
		{`{"not": {"const": 5}}`, `5.5`, `5.000000000000000000000001`},
		{`{"not": {"const": 0}}`, `1`, `-0`},
		{`{"not": {"type": "integer"}}`, `0.5`, `5.000000000000000000000001`},
		{`{"not": {"type": "integer"}}`, `123456789.5`, `12345678901234567890.5`},
		{`{"multipleOf": 7}`, `49`, `99999999999999999999999`},
		{`{"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "null"}}`, `{"a":null,"b":null}`, `{"a":null,"a":null}`},
		{`{"propertyNames": {"enum": ["b", "a"]}, "additionalProperties": {"type": "null"}}`, `{"b":null,"a":null}`, `{"b":null,"a":null,"b":null}`},
		{`{"patternProperties": {"^[ab]$": {"type": "null"}}, "additionalProperties": false}`, `{"b":null,"a":null}`, `{"b":null,"b":null}`},
		{`{"type": "object", "minProperties": 2}`, `{"x":1,"y":2}`, `{"x":1,"x":2}`},
		{`{"type": "object", "minProperties": 2, "maxProperties": 2}`, `{"x":1,"y":2}`, `{"x":1,"y":2,"z":3}`},
		{`{"properties": {"a": {}}, "minProperties": 3}`, `{"a":1,"y":2,"z":3}`, `{"a":1,"z":2,"z":3}`},
		{`{"type": "object", "properties": {"a": {"$ref": "#here"}}, "enum": [{"a": {"$anchor": "here", "type": "null"}}, {"a": 1}], "$defs": {"x": {"$anchor": "here", "type": "integer"}}}`, `{"a": 1}`, `{"a": {"$anchor": "here", "type": "null"}}`},
		{`{"const": {"$id": "x"}, "not": {"$ref": "x"}, "$defs": {"x": {"$id": "x", "type": "string"}}}`, `{"$id": "x"}`, `"x"`},
	} {
		g, err := Compile([]byte(c.schema), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if !grammartest.Reads(t, g, c.valid) {
			t.Errorf("%s refuses %s", c.schema, c.valid)
		}
		if grammartest.Reads(t, g, c.invalid) {
			t.Errorf("%s accepts %s", c.schema, c.invalid)
		}
	}
}

func TestWhatOnlyLooksLikeASchemaHasNoName(t *testing.T) {
	for _, within := range []string{`"enum": [%]`, `"const": %`, `"default": %`, `"examples": [%]`, `"x-own": %`, `"x-own": {"properties": {"c": %}}`} {
		for name, named := range map[string]string{"#a": `{"$anchor": "a"}`, "b": `{"$id": "b"}`} {
			text := `{"anyOf": [{"$ref": "` + name + `"}, {` + strings.ReplaceAll(within, "%", named) + `}]}`
			if _, err := Compile([]byte(text), Options{}); err == nil || !strings.Contains(err.Error(), "$ref") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestAReferenceMayLeadToWhereOtherwiseNoSchemaStands(t *testing.T) {
	g, err := Compile([]byte(`{"$ref": "#/x-own/a", "x-own": {"a": {"type": "array", "items": {"$ref": "#/x-own/b"}}, "b": {"type": "null"}}}`), Options{})
	if err != nil || !grammartest.Reads(t, g, "[null]") || grammartest.Reads(t, g, "[1]") {
		t.Errorf("%v", err)
	}
}
