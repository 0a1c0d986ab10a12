package toolcall

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/lutra-lm/lutra/grammar/budget"
)

// spelled are arguments whose text models escape in ways of their own.
var spelled = []string{
	`{"city": "Köln 😀"}`,
	`{"city": "K\u00f6ln \ud83d\ude00 \uD83D\uDE00"}`,
	`{"city": "a\/b \\ \" \b\f\n\r\t \u0000 \u007f \u2028 \u000A \u0022"}`,
	`{"city":"it's \\n, \\u00f6"}`,
}

func TestAStringMayBeEscapedInEveryWayOfJSON(t *testing.T) {
	for _, f := range formats {
		for _, schema := range []string{`{"type":"string","minLength":1,"maxLength":60}`, ``} {
			tools := []Tool{{Name: "get_weather"}}
			if schema != "" {
				tools[0].Schema = fmt.Appendf(nil, `{"type":"object","properties":{"city":%s},"required":["city"]}`, schema)
			}
			g, err := f.Grammar(budget.Default(), tools, CallConstraint{Required: schema == ""})
			if err != nil {
				t.Fatal(err)
			}
			for _, arguments := range spelled {
				message := f.Write("get_weather", arguments)
				if s, n, err := g.Start().Read([]byte(message)); n != len(message) || !s.Accepts() {
					t.Errorf("%s, %s: %q is refused behind %q (%v)", f.Name, schema, message, message[:n], err)
				}
			}
			lone := f.Write("get_weather", `{"city": "\ud83d, \ude00"}`)
			if _, n, _ := g.Start().Read([]byte(lone)); f.form.arguments == objectKind && n == len(lone) {
				t.Errorf("%s, %s: half a character is accepted in %q", f.Name, schema, lone)
			}
		}
	}
}

func TestAStringArrivesAsItWasWrittenHoweverItIsEscaped(t *testing.T) {
	for _, f := range formats {
		for _, arguments := range spelled {
			message := f.Write("get_weather", arguments)
			p := f.NewParser(tools)
			var got []Call
			for i := range len(message) + 1 {
				for _, part := range p.Push(message[i:min(i+1, len(message))], i == len(message)) {
					got = Join(got, part.Call)
				}
			}
			want := Call{Name: "get_weather", Arguments: arguments}
			if len(got) != 1 || got[0].Canonical() != want.Canonical() || !json.Valid([]byte(got[0].Arguments)) {
				t.Errorf("%s: %q is read as %+v", f.Name, message, got)
			} else if f.form.arguments == objectKind && got[0].Arguments != arguments {
				t.Errorf("%s: %s arrives as %s", f.Name, arguments, got[0].Arguments)
			}
		}
	}
}
