package schema

import (
	"testing"

	"github.com/lutra-lm/lutra/grammar/grammartest"
)

// complements are schemas that need what another one leaves.
var complements = []string{
	`{"not": {"multipleOf": 3}}`, `{"type": "integer", "oneOf": [{"multipleOf": 3}, {"multipleOf": 5}]}`, `{"type": "number", "not": {"multipleOf": 0.5}, "minimum": 0}`,
	`{"type": "object", "not": {"additionalProperties": false}}`, `{"type": "object", "not": {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}}`,
	`{"type": "object", "not": {"properties": {"a": {"type": "integer"}}, "additionalProperties": false}, "maxProperties": 2}`,
	`{"type": "object", "not": {"patternProperties": {"^a": {"type": "integer"}}}}`, `{"type": "object", "not": {"patternProperties": {"^[ab]$": {"type": "integer"}, "c": {"type": "null"}}}}`,
	`{"type": "object", "not": {"propertyNames": {"maxLength": 1}}}`, `{"type": "object", "not": {"propertyNames": {"enum": ["a", "b"]}}}`,
	`{"oneOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}, "additionalProperties": false}]}`,
	`{"oneOf": [{"type": "object", "patternProperties": {"^a": {"type": "integer"}}}, {"type": "object", "required": ["a"]}]}`,
	`{"not": {"const": {"a": 1}}, "type": "object"}`, `{"not": {"enum": [[], [1], {"a": 1}, 3, "x", null, true]}}`, `{"type": "array", "not": {"const": [1, "x"]}}`,
	`{"not": {"oneOf": [{"type": "integer"}, {"minimum": 3}]}}`, `{"oneOf": [{"oneOf": [{"type": "integer"}, {"minimum": 3}]}, {"type": "integer"}]}`,
	`{"not": {"if": {"type": "integer"}, "then": {"minimum": 3}, "else": {"type": "string"}}}`,
	`{"not": {"dependentRequired": {"a": ["b", "c"]}}}`, `{"not": {"dependentSchemas": {"a": {"required": ["b"]}}}}`,
	`{"not": {"prefixItems": [{"type": "integer"}, {"type": "string"}]}}`, `{"type": "array", "not": {"prefixItems": [{}], "items": {"type": "integer"}}}`,
	`{"not": {"contains": {"type": "integer"}, "minContains": 2}}`, `{"not": {"contains": {"type": "integer"}, "maxContains": 1}}`,
	`{"type": "array", "contains": {"type": "integer"}, "minContains": 2, "maxContains": 2}`, `{"type": "array", "contains": {"type": "integer"}, "minContains": 0, "maxContains": 1, "maxItems": 3}`,
	`{"type": "array", "allOf": [{"contains": {"type": "integer"}}, {"contains": {"type": "string"}}, {"contains": {"const": "x"}, "maxContains": 1}]}`,
	`{"type": "string", "not": {"format": "date"}}`, `{"oneOf": [{"format": "ipv4"}, {"format": "ipv6"}], "type": "string"}`,
	`{"type": "object", "minProperties": 2}`, `{"type": "object", "minProperties": 2, "maxProperties": 2, "properties": {"a": {"type": "integer"}}}`, `{"type": "object", "not": {"maxProperties": 1}}`,
	`{"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/x"}}]}}}`,
	`{"not": {"items": {"type": "integer"}, "minItems": 1}}`, `{"not": {"anyOf": [{"type": "string"}, {"not": {"type": "object"}}]}}`,
}

// values are instances that complements tell apart.
var values = []string{
	`0`, `3`, `5`, `15`, `-4`, `0.5`, `2.25`, `""`, `"x"`, `"2024-01-02"`, `"10.0.0.1"`, `"::1"`, `null`, `true`, `false`, `[]`, `[1]`, `["x"]`, `[1,"x"]`, `[1,2]`, `[1,2,3]`, `["x",1]`, `["x","x"]`, `[1,"x","y"]`, `[null]`, `[1.5,1]`,
	`{}`, `{"a":1}`, `{"a":"x"}`, `{"b":1}`, `{"b":"x"}`, `{"ab":1}`, `{"ab":"x"}`, `{"a":1,"b":1}`, `{"a":1,"b":"x"}`, `{"a":1,"zz":"x"}`, `{"a":1,"b":1,"c":1}`, `{"a":1,"b":1,"c":null}`, `{"c":null}`, `{"b":1,"zz":null}`, `{"a":"x","b":1}`,
}

func TestAComplementHoldsWhatIsLeftAndNothingElse(t *testing.T) {
	for _, text := range complements {
		valid := validator(t, text)
		for _, o := range []Options{{AnyOrder: true}, {Listed: true}} {
			g, err := Compile([]byte(text), o)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				break
			}
			for _, instance := range values {
				switch got, err := grammartest.Reads(t, g, instance), valid(instance); {
				case got && err != nil:
					t.Errorf("%s: %s is accepted: %v", text, instance, err)
				case !got && err == nil && !o.Listed:
					t.Errorf("%s: %s is refused", text, instance)
				}
			}
		}
	}
}
