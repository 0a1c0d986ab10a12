package schema

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/grammartest"
	"github.com/lutra-lm/lutra/grammar/regex"
)

func TestValuesOfSeveralSchemasStandInOneText(t *testing.T) {
	f := NewCombined(budget.Default())
	// Both have a definition of the same name.
	a, errA := f.Object([]byte(`{"properties":{"x":{"$ref":"#/$defs/v"}},"required":["x"],"$defs":{"v":{"enum":[1,2]}}}`), Options{})
	b, errB := f.Object([]byte(`{"properties":{"x":{"$ref":"#/$defs/v"}},"required":["x"],"$defs":{"v":{"enum":["a"]}}}`), Options{})
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	comma := f.Match(f.Arena().Literal(", then "))
	list := f.Rule()
	f.Let(list, []grammar.Symbol{a, comma, b}, []grammar.Symbol{a, comma, list})
	g, err := f.Grammar(list)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"x": 1}, then {"x": "a"}`:                true,
		`{"x": 1}, then {"x": 2}, then {"x": "a"}`: true,
		`{"x": "a"}, then {"x": "a"}`:              false,
		`{"x": 1}`:                                 false,
		`[1], then {"x": "a"}`:                     false,
	} {
		if got := grammartest.Reads(t, g, text); got != want {
			t.Errorf("%s is accepted: %v, want %v", text, got, want)
		}
	}
}

// elementsOf are arguments as elements, with the properties that are text.
func elementsOf(schema string, texts ...string) (*grammar.Grammar, error) {
	f := NewCombined(budget.Default())
	never, err := f.Arena().Search("</p>", regex.Raw)
	if err != nil {
		return nil, err
	}
	a := f.Arena()
	s, err := f.Elements([]byte(schema), Elements{
		Open: a.Literal("<p="), Named: a.Literal(">"), NamedText: a.Literal(">"), Close: a.Literal("</p>"), Never: never,
		Text: func(name string) bool { return strings.Contains(strings.Join(texts, " "), name) },
		Name: func(name string) bool { return !strings.Contains(name, ">") },
	})
	if err != nil {
		return nil, err
	}
	return f.Grammar(f.Rule([]grammar.Symbol{s}))
}

func TestAnObjectIsWrittenAsElements(t *testing.T) {
	g, err := elementsOf(`{"properties":{
		"name":{"type":"string","maxLength":5,"pattern":"^[a-zü\"]"},"kind":{"$ref":"#/$defs/kind"},"end":{"enum":["</p>","x"]},"day":{"type":"string","format":"date"},"size":{"type":["integer","null"]},"more":{},"a>b":{}},
		"required":["name","size"],"$defs":{"kind":{"enum":["\"a\"","b"],"not":{"const":"b"}}}}`, "name", "kind", "day", "end")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`<p=name>ü"\d</p><p=size>3</p>`:                                     true,
		`<p=name>a</p><p=kind>"a"</p><p=day>2024-02-29</p><p=size>null</p>`: true,
		`<p=name>a</p><p=size>3</p><p=more>{"a": ["<b>"]}</p>`:              true,
		`<p=name>a</p><p=size>3</p><p=more>["</p>"]</p>`:                    false, // whoever reads it would take that for the end
		`<p=name>a</p><p=size>3</p><p=more>{"</p>": 1}</p>`:                 false,
		`<p=name>a</p><p=end>x</p><p=size>3</p>`:                            true,
		`<p=name>a</p><p=end></p></p><p=size>3</p>`:                         false,
		`<p=name>a</p><p=size>3</p><p=a>b>1</p>`:                            false,
		`<p=name>a</p><p=kind>b</p><p=size>3</p>`:                           false,
		`<p=name>a</p><p=day>2023-02-29</p><p=size>3</p>`:                   false,
		`<p=name>abcdef</p><p=size>3</p>`:                                   false,
		`<p=name>A</p><p=size>3</p>`:                                        false,
		`<p=name>a</p><p=size>"3"</p>`:                                      false,
		`<p=name>a</p>`:                                                     false,
		`<p=name>a</p><p=size>3</p><p=other>3</p>`:                          false,
	} {
		if got := grammartest.Reads(t, g, text); got != want {
			t.Errorf("%s is accepted: %v, want %v", text, got, want)
		}
	}
}

func TestElementsOfAnObjectWithoutNamedPropertiesHaveAnyName(t *testing.T) {
	g, err := elementsOf(Object)
	if err != nil || !grammartest.Reads(t, g, "") || !grammartest.Reads(t, g, "<p=a.b>x < y\n</p><p=c></p>") || grammartest.Reads(t, g, "<p=a b>x</p>") {
		t.Errorf("any object: %v", err)
	}
	if g, err = elementsOf(`{"type":"object","additionalProperties":{"type":"integer"}}`); err != nil || !grammartest.Reads(t, g, "") || grammartest.Reads(t, g, "<p=a>x</p>") {
		t.Errorf("numbers alone: %v", err)
	}
}

func TestWhatElementsCannotBeHeldToIsRefused(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"a":{}},"minProperties":1}`:                          "minProperties",
		`{"properties":{"a":{},"b":{}},"maxProperties":1}`:                   "maxProperties",
		`{"properties":{"a":{"type":"string","enum":[7]}},"required":["a"]}`: "no value meets it",
		`{"type":"string"}`:                            "no value meets it",
		`{"properties":{"a>b":{}},"required":["a>b"]}`: `the name "a>b"`,
		`{"$dynamicRef":"#a"}`:                         "$dynamicRef",
		`{`:                                            "",
	} {
		if _, err := elementsOf(schema, "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}
