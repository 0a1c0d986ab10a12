package schema

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// walk writes a random text that g accepts, byte by byte, and after a while
// straight to an end.
func walk(t *testing.T, g *grammar.Grammar, v *grammar.Vocabulary, r *rand.Rand) string {
	t.Helper()
	s := g.Start()
	var text []byte
	for most := r.IntN(150); !s.Accepts() || r.IntN(8) > 0; {
		mask := make(grammar.Mask, v.Words())
		if err := s.Allow(v, mask, nil); err != nil {
			t.Fatal(err)
		}
		var may []byte
		for b := range 256 {
			if mask.Has(int32(b)) {
				may = append(may, byte(b))
			}
		}
		if len(may) == 0 && s.Accepts() {
			break
		}
		if len(text) > most && utf8.Valid(text) {
			return string(text) + ending(t, s, r)
		}
		if len(may) == 0 {
			t.Fatalf("nothing may follow %q", text)
		}
		b := may[r.IntN(len(may))]
		if mask.Has('"') && r.IntN(4) == 0 {
			b = '"'
		}
		next, n, err := s.Read([]byte{b})
		if n != 1 || err != nil {
			t.Fatalf("%q is allowed behind %q and not accepted: %v", b, text, err)
		}
		s, text = next, append(text, b)
	}
	return string(text)
}

// ending is a text that leads from s to an end, of several tried the first.
func ending(t *testing.T, s *grammar.State, r *rand.Rand) string {
	t.Helper()
	for range 2000 {
		at := s
		var text []byte
		for len(text) < 400 && !at.Accepts() {
			var may []byte
			for b := range 256 {
				if _, n, err := at.Read([]byte{byte(b)}); err != nil {
					t.Fatal(err)
				} else if n == 1 {
					may = append(may, byte(b))
				}
			}
			if len(may) == 0 {
				t.Fatalf("nothing may follow %q", text)
			}
			b := may[r.IntN(len(may))]
			for _, end := range []byte(`"]}`) {
				if bytes.IndexByte(may, end) >= 0 && r.IntN(3) > 0 {
					b = end
					break
				}
			}
			at, _, _ = at.Read([]byte{b})
			text = append(text, b)
		}
		if at.Accepts() {
			return string(text)
		}
	}
	t.Fatalf("no end is near: %s", s.Expected())
	return ""
}

// schemas are what random texts are written for.
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
	r := rand.New(rand.NewPCG(1, 2))
	for i, text := range slices.Concat(schemas, schemas) {
		g, err := Compile([]byte(text), Options{Listed: i < len(schemas)})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		valid := validator(t, text)
		for range sweep.Of(10, 25) {
			out := walk(t, g, single, r)
			if err := valid([]byte(out)); err != nil {
				t.Errorf("%s: %q: %v", text, out, err)
				break
			}
		}
	}
}

// ecma is a pattern as the validator wants it.
type ecma regexp2.Regexp

func (e *ecma) MatchString(text string) bool {
	ok, err := (*regexp2.Regexp)(e).MatchString(text)
	return ok && err == nil
}

func (e *ecma) String() string { return (*regexp2.Regexp)(e).String() }
