package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
)

// many writes n items with separators.
func many(n int, item func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	return b.String()
}

func TestHostileSchemasAreRefusedOrUsableInBoundedTime(t *testing.T) {
	for name, text := range map[string]string{
		"a million alternatives": `{"anyOf": [` + many(200000, func(i int) string { return fmt.Sprintf(`{"const": %d}`, i) }) + `]}`,
		"products of alternatives": `{"allOf": [` + many(40, func(i int) string {
			return fmt.Sprintf(`{"anyOf": [{"required": ["a%d"]}, {"required": ["b%d"]}]}`, i, i)
		}) + `]}`,
		"a schema that is itself":   `{"$ref": "#"}`,
		"endless values":            `{"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}`,
		"a circle of references":    `{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}`,
		"depth":                     strings.Repeat(`{"not":`, 5000) + `{}` + strings.Repeat(`}`, 5000),
		"a large pattern":           `{"pattern": "` + strings.Repeat("(a|", 2000) + `"}`,
		"overlapping alternatives":  `{"oneOf": [` + many(3000, func(i int) string { return fmt.Sprintf(`{"required": ["a%d"]}`, i) }) + `]}`,
		"dependencies":              `{"dependentRequired": {` + many(100, func(i int) string { return fmt.Sprintf(`"a%d": ["b%d"]`, i, i) }) + `}}`,
		"patterns of names":         `{"patternProperties": {` + many(60, func(i int) string { return fmt.Sprintf(`"a%d": {"minimum": %d}`, i, i) }) + `}}`,
		"a huge number":             `{"minimum": 1e999999999}`,
		"a tiny multiple":           `{"multipleOf": 1e-300}`,
		"an unknown reference":      `{"$ref": "other.json#/a"}`,
		"a negative length":         `{"minLength": -1}`,
		"no schema":                 `7`,
		"no JSON":                   `{"type": `,
		"something behind":          `{} {}`,
		"contradicting types":       `{"allOf": [{"type": "string"}, {"type": "null"}]}`,
		"a pattern without matches": `{"type": "string", "pattern": "^a$", "minLength": 2}`,
	} {
		_, err := Compile([]byte(text), Options{})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"many items":           `{"type": "array", "maxItems": 1000000, "items": {"type": "null"}}`,
		"long texts":           `{"type": "string", "minLength": 100000, "maxLength": 1000000}`,
		"a catastrophic match": `{"type": "string", "pattern": "^(a+)+$"}`,
		"many properties":      `{"type": "object", "properties": {` + many(3000, func(i int) string { return fmt.Sprintf(`"p%d": {"type": "null"}`, i) }) + `}}`,
		"many values":          `{"enum": [` + many(20000, func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `]}`,
	} {
		g, err := Compile([]byte(text), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := g.Start().Allow(single, make(grammar.Mask, single.Words()), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// single is a vocabulary of bytes.
var single = grammar.NewVocabulary(256, func(id int32) []byte { return []byte{byte(id)} })

func FuzzSchemasNeverPanic(f *testing.F) {
	for _, text := range schemas {
		f.Add(text, `{"a": [1, "x"]}`)
	}
	f.Fuzz(func(t *testing.T, text, instance string) {
		if len(text) > 2000 {
			return
		}
		g, err := Compile([]byte(text), Options{})
		if err != nil {
			return
		}
		s, _, err := g.Start().Read([]byte(instance[:min(len(instance), 100)]))
		if err == nil {
			_ = s.Allow(single, make(grammar.Mask, single.Words()), nil)
		}
	})
}
