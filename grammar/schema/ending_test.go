package schema

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lutra-lm/lutra/grammar"
)

// stray writes random bytes that g allows, and after a while those that seem to lead to
// an end. stuck: nothing may follow what has been written, and it may not end there;
// ended: it may.
func stray(t *testing.T, g *grammar.Grammar, r *rand.Rand) (text []byte, ended, stuck bool) {
	t.Helper()
	s := g.Start()
	for most, at := 10+r.IntN(60), 0; at < 6000; at++ {
		if s.Accepts() && (s.Ended() || at > most || r.IntN(8) == 0) {
			return text, true, false
		}
		var may []byte
		var next [256]*grammar.State
		for b := range 256 {
			after, n, err := s.Read([]byte{byte(b)})
			if err != nil {
				return text, false, false // it has become too complex
			}
			if n == 1 {
				may, next[b] = append(may, byte(b)), after
			}
		}
		if len(may) == 0 {
			return text, s.Accepts(), !s.Accepts()
		}
		b := may[r.IntN(len(may))]
		if at > most || r.IntN(3) == 0 {
			for _, end := range []byte(`}]"0`) {
				if next[end] != nil && r.IntN(3) > 0 {
					b = end
					break
				}
			}
		}
		s, text = next[b], append(text, b)
	}
	return text, false, false
}

// endless are schemas that once led to where nothing may follow.
var endless = []string{
	`{"type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]}, "additionalProperties": {"type": "number"}, "required": ["a", "b"]}`,
	`{"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "null"}, "minProperties": 2}`,
	`{"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}}, "additionalProperties": false, "required": ["a", "b"]}`,
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

func TestNoTextComesToADeadEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, text := range endless {
		g, err := Compile([]byte(text), Options{Listed: true})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		valid := validator(t, text)
		for range 40 {
			out, ended, stuck := stray(t, g, r)
			if stuck {
				t.Errorf("%s: nothing may follow %q", text, out)
				break
			}
			if err := valid(out); ended && err != nil {
				t.Errorf("%s: %q: %v", text, out, err)
				break
			}
		}
	}
}

// validator checks texts against a schema, formats included.
func validator(t *testing.T, text string) func(instance []byte) error {
	t.Helper()
	check, err := validates(text)
	if err != nil {
		t.Fatal(err)
	}
	return check
}

// validates is validator for schemas that may be faulty.
func validates(text string) (func(instance []byte) error, error) {
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
	return func(instance []byte) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(instance)))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}, nil
}

// TestNoTextOfMaskBenchComesToADeadEnd walks through the schemas in the folder that
// LUTRA_MASKBENCH names, such as maskbench/data: as often as LUTRA_WALKS says, or once.
func TestNoTextOfMaskBenchComesToADeadEnd(t *testing.T) {
	dir := os.Getenv("LUTRA_MASKBENCH")
	if dir == "" {
		t.Skip("LUTRA_MASKBENCH names no folder")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas in %s: %v", dir, err)
	}
	times := 1
	if n := os.Getenv("LUTRA_WALKS"); n != "" {
		if err := json.Unmarshal([]byte(n), &times); err != nil {
			t.Fatal(err)
		}
	}
	walks, ends, checked := 0, 0, 0
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f struct{ Schema json.RawMessage }
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		g, err := Compile(f.Schema, Options{Listed: i%2 == 0})
		if err != nil {
			continue
		}
		valid, fault := validates(string(f.Schema))
		r := rand.New(rand.NewPCG(9, uint64(i)))
		for range times {
			out, ended, stuck := stray(t, g, r)
			walks++
			if stuck {
				t.Errorf("%s: nothing may follow %q", filepath.Base(name), out)
			}
			if !ended {
				continue
			}
			ends++
			if fault == nil {
				checked++
				if err := valid(out); err != nil {
					t.Errorf("%s: %.300q: %v", filepath.Base(name), out, err)
				}
			}
		}
	}
	t.Logf("%d walks, %d of them to an end, %d of these texts checked", walks, ends, checked)
}
