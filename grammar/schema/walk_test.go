package schema

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// schemas lists the schemas for which random texts are written.
var schemas = []string{
	`{"type": "object", "additionalProperties": false, "required": ["id", "lines"], "properties": {"id": {"type": "string", "pattern": "^INV-[0-9]{3}$"},
		"due": {"type": "string", "format": "date"}, "at": {"format": "date-time"},
		"lines": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "object", "required": ["n", "price"], "properties":
			{"n": {"type": "integer", "minimum": 1, "maximum": 12}, "price": {"type": "number", "exclusiveMinimum": 0, "maximum": 99, "multipleOf": 0.25}}}}}}`,
	`{"type": "number", "exclusiveMinimum": 0, "maximum": 99, "multipleOf": 0.25}`,
	`{"type": "integer", "minimum": -17, "exclusiveMaximum": 1003, "multipleOf": 7}`,
	`{"type": "number", "minimum": -0.5, "maximum": 0.25}`,
	`{"type": "string", "minLength": 3, "maxLength": 5}`,
	`{"type": "string", "pattern": "^(?!ab)[a-c]+$", "maxLength": 4}`,
	`{"type": "string", "not": {"enum": ["a", "b"]}, "maxLength": 1}`,
	`{"type": "string", "format": "ipv6"}`, `{"type": "string", "format": "email"}`, `{"type": "string", "format": "uri"}`, `{"type": "string", "format": "hostname"}`,
	`{"type": "string", "format": "duration"}`, `{"type": "string", "format": "time"}`, `{"type": "string", "format": "uuid"}`, `{"type": "string", "format": "json-pointer"}`,
	`{"type": "string", "format": "regex"}`, `{"type": "string", "format": "semver"}`, `{"type": "string", "format": "url"}`, `{"type": "string", "format": "colour"}`,
	`{"type": "string", "pattern": "(?i)^[a-c]{2}\\b[ -~]*$"}`, `{"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^[a-f]$"}, "minItems": 4}`,
	`{"type": "string", "format": "ipv4"}`, `{"type": "string", "format": "uri-reference"}`, `{"type": "string", "format": "iri"}`, `{"type": "string", "format": "relative-json-pointer"}`,
	`{"type": "array", "uniqueItems": true, "items": {"enum": [1, "a", null, true]}, "minItems": 2}`,
	`{"type": "array", "uniqueItems": true, "items": {"type": "string"}}`, `{"type": "array", "uniqueItems": true, "items": {"type": "integer", "minimum": 1, "maximum": 70}, "minItems": 12}`,
	`{"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^[a-c]{1,4}$"}, "minItems": 12}`,
	`{"type": "array", "items": {"type": "array", "uniqueItems": true, "items": {"type": ["string", "number", "null", "boolean"], "maxLength": 1}}, "maxItems": 3}`,
	`{"anyOf": [{"type": "array", "uniqueItems": true, "items": {"type": "integer"}}, {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "number", "multipleOf": 0.5}}}, "additionalProperties": false}}]}`,
	`{"type": "array", "contains": {"const": 3}, "items": {"type": "integer"}, "maxItems": 4}`,
	`{"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": false, "minItems": 1}`,
	`{"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "null"}}`,
	`{"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 5}}, "additionalProperties": false}`,
	`{"type": "object", "propertyNames": {"pattern": "^[a-z]{2}$"}, "properties": {"aa": {"const": 1}, "b": {"const": 2}}, "additionalProperties": {"type": "boolean"}}`,
	`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}, "dependentRequired": {"a": ["c"]}, "additionalProperties": false}`,
	`{"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}], "properties": {"a": {"const": 1}, "b": {"const": 2}}, "additionalProperties": false}`,
	`{"type": "object", "properties": {"k": {"enum": ["x", "y"]}, "v": {"type": ["string", "integer"], "maxLength": 2, "maximum": 20, "minimum": 0}}, "required": ["k", "v"], "additionalProperties": false,
		"if": {"properties": {"k": {"const": "x"}}}, "then": {"properties": {"v": {"type": "string"}}}, "else": {"properties": {"v": {"type": "integer"}}}}`,
	`{"$defs": {"tree": {"type": "object", "required": ["l"], "properties": {"l": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}}, "additionalProperties": false}}, "$ref": "#/$defs/tree"}`,
	`{"allOf": [{"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"maximum": 3}, "b": {"type": "null"}}, "required": ["a"]}], "type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": false}`,
	`{"const": {"a": [1, {"b": "\u00e9\n"}], "c": {}}}`,
}

func TestRandomTextsOfAGrammarMeetTheSchema(t *testing.T) {
	sweep.Full(t)
	r := rand.New(rand.NewPCG(1, 2))
	all, ends := 0, 0
	for _, text := range slices.Concat(schemas, complements, endless) {
		for _, o := range []Options{{}, {Listed: true}} {
			g, err := Compile([]byte(text), o)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			all += 3 * sweep.Of(t, 1, 5)
			ends += walks(t, text, g, r, vocabularies(r, text), sweep.Of(t, 1, 5))
		}
	}
	if ends < all*9/10 {
		t.Errorf("of %d random texts, %d come to an end", all, ends)
	}
}

// endless are schemas that once led to where nothing may follow.
var endless = []string{
	`{"type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]}, "additionalProperties": {"type": "number"}, "required": ["a", "b"]}`,
	`{"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "null"}, "minProperties": 2}`,
	`{"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}}, "additionalProperties": false, "required": ["a", "b"]}`,
	`{"type": "object", "patternProperties": {"^a(x|y)$": {"maximum": 0},"^b(x|y)$": {"minimum": 1},"^c(x|y)$": {"maximum": 2},"^d(x|y)$": {"minimum": 3},"^e(x|y)$": {"maximum": 4},"^f(x|y)$": {"minimum": 5},"^g(x|y)$": {"maximum": 6},"^h(x|y)$": {"minimum": 7},"^i(x|y)$": {"maximum": 8},"^j(x|y)$": {"minimum": 9}, "^[a-dx]+$": {"type": "integer"}, "y$": {"type": ["integer", "null"]}}, "additionalProperties": false, "minProperties": 1}`,
	`{"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}, "^[bc]$": {"minimum": 7}}, "additionalProperties": false, "maxProperties": 2}`,
	`{"type": "integer", "multipleOf": 2500, "minimum": 10000, "maximum": 1000000}`, `{"type": "number", "multipleOf": 2500, "minimum": 10000, "maximum": 1000000}`,
	`{"type": "integer", "multipleOf": 3600}`, `{"type": "integer", "multipleOf": 65536}`, `{"multipleOf": 86400, "type": "number"}`,
	`{"type": "integer", "allOf": [{"multipleOf": 6}, {"multipleOf": 10}], "exclusiveMinimum": 30, "maximum": 60}`,
	`{"type": "string", "allOf": [{"pattern": "[aA][12].*[zZ]"}, {"minLength": 10}, {"maxLength": 20}, {"anyOf": [{"pattern": "x$"}, {"pattern": "z$"}]},
		{"anyOf": [{"pattern": "1111111111111111111"}, {"pattern": "222222222222222222"}, {"allOf": [{"not": {"pattern": "^[abc]"}}, {"not": {"pattern": "[xyz]$"}}]}]}]}`,
	`{"type": "string", "pattern": "[aA][12].*[zZ]", "minLength": 10, "maxLength": 20, "anyOf": [{"not": {"pattern": "ab1"}}, {"pattern": "\\d\\d"}], "not": {"pattern": "^....$"}}`,
	`{"type": "object", "patternProperties": {"^[a-e]$": true}, "additionalProperties": false, "required": ["a"], "minProperties": 3, "dependentRequired": {"a": ["c"]}, "dependencies": {"c": {"not": {"required": ["d"]}}}}`,
	`{"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "string", "pattern": "^a", "maxLength": 1, "not": {"const": "a"}}}`,
}
