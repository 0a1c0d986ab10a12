package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/grammartest"
	"github.com/lutra-lm/lutra/grammar/regex"
	"github.com/lutra-lm/lutra/internal/sweep"
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
		if err := g.Start().Allow(bytewise, make(grammar.Mask, bytewise.Words()), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompilingTakesABoundedNumberOfSteps(t *testing.T) {
	sweep.Full(t)
	all := map[string]string{
		"optional properties": `{"type": "object", "properties": {` + many(20000, func(i int) string { return fmt.Sprintf(`"p%d": {"type": "integer"}`, i) }) + `}}`,
		"required properties": `{"required": [` + many(20000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
		"values":              `{"enum": [` + many(60000, func(i int) string { return fmt.Sprintf(`"%08x%08x%08x"`, i*2654435761, i*40503, i*97) }) + `]}`,
		"objects as values":   `{"enum": [` + many(20000, func(i int) string { return fmt.Sprintf(`{"a": %d, "b": [%d]}`, i, i) }) + `]}`,
		"overlapping names":   `{"patternProperties": {` + many(8, func(i int) string { return fmt.Sprintf(`"%c.{%d}%c": {"minimum": %d}`, 'a'+i, i+5, 'b'+i, i) }) + `}}`,
		"overlapping schemas": `{"oneOf": [` + many(2000, func(i int) string { return fmt.Sprintf(`{"properties": {"a%d": {"const": %d}}}`, i, i) }) + `]}`,
		"overlapping texts":   `{"type": "string", "allOf": [` + many(8, func(i int) string { return fmt.Sprintf(`{"pattern": "(a|b)*a(a|b){%d}"}`, 100+i) }) + `, {"not": {"pattern": "(a|b)*b(a|b){200}"}}]}`,
		"counted items":       `{"maxItems": 400, "allOf": [` + many(3, func(i int) string { return fmt.Sprintf(`{"contains": {"const": %d}, "maxContains": 30}`, i) }) + `]}`,
	}
	if !sweep.All(t) { // most of the work; like others
		delete(all, "values")
		delete(all, "objects as values")
		delete(all, "overlapping schemas")
	}
	for name, text := range all {
		root, err := read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCompiler(regex.New(), root, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.build(subs{{schema: root}}) == nil {
			freeze(c.arena)
			c.settle()
			if g, err := grammar.New(c.arena, c, c.symbol(symbol{kind: symValue})); err == nil {
				_, _, _ = g.Start().Read([]byte(`{"p1": 1, "p`))
			}
		}
		if c.effort > mostEffort+1<<17 || c.arena.Work() > 1<<21 {
			t.Errorf("%s: %d steps, and %d of expressions", name, c.effort, c.arena.Work())
		}
	}
}

func TestSchemasMayBeNested64Deep(t *testing.T) {
	for name, c := range map[string]struct{ schema, instance string }{
		"objects": {strings.Repeat(`{"type": "object", "required": ["a"], "properties": {"a":`, 64) + `{"type": "null"}` + strings.Repeat(`}}`, 64), strings.Repeat(`{"a":`, 64) + `null` + strings.Repeat(`}`, 64)},
		"lists":   {strings.Repeat(`{"items":`, 64) + `{"type": "null"}` + strings.Repeat(`}`, 64), strings.Repeat(`[`, 64) + `null` + strings.Repeat(`]`, 64)},
		"ways":    {strings.Repeat(`{"anyOf": [{"type": "boolean"}, `, 64) + `{"type": "null"}` + strings.Repeat(`]}`, 64), `null`},
		"not":     {strings.Repeat(`{"not":`, 64) + `{"type": "null"}` + strings.Repeat(`}`, 64), `null`},
		"values":  {`{"const": ` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`, strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64)},
	} {
		g, err := Compile([]byte(c.schema), Options{})
		if err != nil || !grammartest.Reads(t, g, c.instance) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bytewise is a vocabulary of bytes.
var bytewise = grammartest.Bytes().Vocabulary

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
			_ = s.Allow(bytewise, make(grammar.Mask, bytewise.Words()), nil)
		}
	})
}
