package jsonread

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// FuzzJSONParts holds that the parts found in valid JSON are those that the
// standard library finds.
func FuzzJSONParts(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, ` { } `, `[ ]`, `{"a":1,"b":[1,{"c":"]}"}],"a":null}`, "[1 ,\t-2.5e9,\r\n\"\\\"\",true,false,null,[],{}]",
		`{"\u0061\"":"\\","\\\\":"\\\""}`, `["\\","\\\"","\\\\"]`, `{"":{"":[[[]]]}}`, `"a"`, `1`, `[1`, `{"a"`, `"\`, `[[[`, `}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		deeper(text, 3) // finds its way in anything
		if !json.Valid(text) {
			return
		}
		switch Kind(text) {
		case "a list":
			var want []json.RawMessage
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			got := slices.Collect(Elements(text))
			if len(got) != len(want) || Count(text) != len(want) {
				t.Fatalf("%q has %d elements, want %d", text, len(got), len(want))
			}
			for i := range want {
				if string(got[i]) != string(want[i]) {
					t.Fatalf("element %d of %q is %q, want %q", i, text, got[i], want[i])
				}
			}
		case "an object":
			var want map[string]json.RawMessage
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			got := map[string]json.RawMessage{}
			for written, value := range Members(text) {
				name, ok := readText(written)
				if !ok {
					t.Fatalf("%q has the name %q", text, written)
				}
				got[name] = value
			}
			if len(got) != len(want) {
				t.Fatalf("%q has %d members, want %d", text, len(got), len(want))
			}
			for name, value := range want {
				if string(got[name]) != string(value) {
					t.Fatalf("member %q of %q is %q, want %q", name, text, got[name], value)
				}
			}
		case "a string":
			var want string
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if got, ok := readText(json.RawMessage(strings.TrimSpace(string(text)))); !ok || got != want {
				t.Fatalf("%q reads %q, want %q", text, got, want)
			}
		}
	})
}

// readText is text, a name that the fuzz target has for its input.
var readText = Text

func TestDepthIsCountedOutsideOfStrings(t *testing.T) {
	for text, want := range map[string]bool{
		`[[1]]`: false, `[[[1]]]`: true, `{"a":{"b":{}}}`: true, `["[[[[","\"[[[["]`: false, `[[],[],[]]`: false, `["\\",[[]]]`: true,
	} {
		if deeper([]byte(text), 2) != want {
			t.Errorf("deeper(%s, 2) = %v, want %v", text, !want, want)
		}
	}
}
