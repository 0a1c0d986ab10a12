package toolcall

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// strictTools returns two with schemas that random arguments do not meet.
func strictTools(t testing.TB) []Tool {
	t.Helper()
	var raw []any
	for _, tool := range []string{
		`{"function":{"name":"get_weather","strict":true,"parameters":{"type":"object","properties":{
			"city":{"type":"string","minLength":2,"maxLength":9},"unit":{"enum":["C","F"],"type":"string"},
			"days":{"type":"integer","minimum":1,"maximum":9},"near":{"$ref":"#/$defs/place"}},
			"required":["city","days"],"additionalProperties":false,"$defs":{"place":{"type":"array","items":{"type":"boolean"},"maxItems":2}}}}}`,
		`{"function":{"name":"now","strict":true,"parameters":{"type":"object","properties":{"zone":{"type":"string","pattern":"^[A-Z]{3}$"}},"required":["zone"],"additionalProperties":false}}}`,
	} {
		raw = append(raw, json.RawMessage(tool))
	}
	tools, fault := Definitions(raw)
	if fault != nil {
		t.Fatal(fault.Message)
	}
	return tools
}

// validate holds the calls of a message to the schemas of its tools.
func validate(tools []Tool, calls []Call) error {
	for _, c := range calls {
		i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == c.Name })
		if i < 0 {
			return fmt.Errorf("a call of %q", c.Name)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tools[i].Schema)))
		if err != nil {
			return err
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("tool.json", doc); err != nil {
			return err
		}
		schema, err := compiler.Compile("tool.json")
		if err != nil {
			return err
		}
		arguments, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Arguments))
		if err != nil {
			return fmt.Errorf("%q: %w", c.Arguments, err)
		}
		if err := schema.Validate(arguments); err != nil {
			return fmt.Errorf("%s: %w", c.Arguments, err)
		}
	}
	return nil
}

// calls returns the calls of a whole message, and its text.
func calls(f *Format, tools []Tool, message string) (list []Call, text string) {
	p := f.NewParser(tools)
	for _, part := range p.Push(message, true) {
		list = Join(list, part.Call)
		text += part.Text
	}
	return list, text
}

// letters are tokens of a byte each.
var letters = grammar.NewVocabulary(256, func(id int32) []byte { return []byte{byte(id)} })

// random writes a text that g accepts, byte by byte: mostly the letters that lead into
// a call.
func random(t *testing.T, g *grammar.Grammar, r *rand.Rand, begin string) string {
	t.Helper()
	s, n, err := g.Start().Read([]byte(begin))
	if err != nil || n < len(begin) {
		t.Fatalf("%q may not begin an answer: %q may stand there (%v)", begin, begin[:n], err)
	}
	text := []byte(begin)
	for len(text) < 4000 {
		if s.Accepts() && (s.Ended() || r.IntN(3) == 0) {
			return string(text)
		}
		mask := make(grammar.Mask, letters.Words())
		if err := s.Allow(letters, mask, nil); err != nil {
			t.Fatal(err)
		}
		var may []byte
		for b := range 256 {
			if mask.Has(int32(b)) {
				may = append(may, byte(b))
			}
		}
		if len(may) == 0 {
			t.Fatalf("nothing may follow %q", text)
		}
		b := may[r.IntN(len(may))]
		for _, likely := range []byte{'"', '}', ']', '\n', '<'} { // what leads to an end
			if mask.Has(int32(likely)) && r.IntN(6) == 0 {
				b = likely
			}
		}
		if s, n, err = s.Read([]byte{b}); n != 1 || err != nil {
			t.Fatalf("%q is allowed behind %q and not accepted: %v", b, text, err)
		}
		text = append(text, b)
	}
	return ""
}

func TestWhateverAGrammarOfCallsAcceptsIsReadAsCallsThatMeetTheirSchema(t *testing.T) {
	tools := strictTools(t)
	for _, f := range formats {
		for _, one := range []bool{false, true} {
			g, err := f.Grammar(budget.Default(), tools, CallConstraint{Required: true, Single: one})
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			most, ended, drawn := 0, 0, sweep.Cases(14, 60)
			for range drawn {
				begin := ""
				if f == Harmony { // no thought, which may be long
					begin = []string{"<|channel|>commentary", " to="}[r.IntN(2)]
				}
				message := random(t, g, r, begin)
				if message == "" || !utf8.ValidString(message) {
					continue
				}
				ended++
				list, text := calls(f, tools, message)
				if err := validate(tools, list); err != nil || len(list) == 0 || strings.TrimSpace(text) != "" || one && len(list) > 1 {
					t.Fatalf("%s: %q is read as %+v and the text %q: %v", f.Name, message, list, text, err)
				}
				most = max(most, len(list))
			}
			if ended < drawn*2/3 || most < 2 && !one && f != Harmony && !f.form.once {
				t.Errorf("%s: %d messages with up to %d calls", f.Name, ended, most)
			}
		}
	}
}

const good = `{"city": "Bonn", "days": 3}`

func TestTextIsFreeUpToACallThatIsHeldToItsSchema(t *testing.T) {
	tools := strictTools(t)
	for _, f := range formats {
		g, err := f.Grammar(budget.Default(), tools, CallConstraint{})
		if err != nil {
			t.Fatal(err)
		}
		accepts := func(message string) bool {
			s, n, err := g.Start().Read([]byte(message))
			return err == nil && n == len(message) && s.Accepts()
		}
		lead := "I look <b>.\n"
		switch f {
		case Llama, PythonBare:
			lead = ""
		case Functionary32:
			lead = "all\nI look.>>>"
		case Harmony:
			lead = "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant"
		}
		for message, want := range map[string]bool{
			"No tool helps: {1, 2} < 3.":                                     true,
			`{"name": "Ada", "born": 1815}`:                                  true,
			lead + f.Write("get_weather", good):                              true,
			f.Write("now", `{"zone": "UTC"}`):                                true,
			lead + f.Write("get_weather", `{"city": "Bonn"}`):                false,
			lead + f.Write("get_weather", `{"city": "B", "days": 3}`):        false,
			lead + f.Write("get_weather", `{"city": "Bonn", "days": "3.5"}`): false,
			f.Write("now", good):                                             false,
		} {
			if got := accepts(message); got != want {
				t.Errorf("%s: %q is accepted: %v, want %v", f.Name, message, got, want)
			}
		}
		if f != Llama && f != PythonBare && f != Functionary32 && accepts(lead+f.Write("other", "{}")) {
			t.Errorf("%s: a call of an unknown tool is accepted", f.Name)
		}
	}
}

func TestAnAnswerIsHeldToAFormatOrIsCalls(t *testing.T) {
	tools := strictTools(t)
	const answer = `{"sum": 3}`
	held := func(f *schema.Combined) (grammar.Symbol, error) {
		return f.Value([]byte(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`), schema.Options{Listed: true})
	}
	for _, f := range formats {
		before := cmp.Or(map[*Format]string{Harmony: "<|channel|>final<|message|>"}[f], f.form.all)
		for _, thought := range []string{"", "<think>3 < 4</think>\n\n"} {
			c := CallConstraint{Answer: held}
			if thought != "" {
				c.Thought = [2]string{"<think>", "</think>"}
			}
			if thought != "" && f == Harmony {
				thought = "<|channel|>analysis<|message|>3 < 4<|end|><|start|>assistant"
			}
			g, err := f.Grammar(budget.Default(), tools, c)
			if err != nil {
				t.Fatal(err)
			}
			for message, want := range map[string]bool{
				before + answer:                                       true,
				before + `{"sum": "3"}`:                               false,
				before + "Three.":                                     false,
				f.Write("now", `{"zone": "UTC"}`):                     true,
				f.Write("now", `{"zone": 1}`):                         false,
				"I look. " + f.Write("get_weather", good):             false,
				before + answer + "\n" + f.Write("get_weather", good): false,
				before + answer + "\nas asked":                        false,
			} {
				s, n, err := g.Start().Read([]byte(thought + message))
				if got := err == nil && n == len(thought+message) && s.Accepts(); got != want {
					t.Errorf("%s: %q is accepted: %v, want %v", f.Name, thought+message, got, want)
				}
			}
			if list, text := calls(f, tools, before+answer); len(list) > 0 || text != answer {
				t.Errorf("%s: the answer is read as %+v and %q", f.Name, list, text)
			}
		}
		if _, err := f.Grammar(budget.Default(), tools, CallConstraint{Answer: func(f *schema.Combined) (grammar.Symbol, error) {
			return f.Value([]byte(`{"type":7}`), schema.Options{})
		}}); err == nil {
			t.Errorf("%s: a schema that is none is taken", f.Name)
		}
	}
}

func TestSeveralCallsFollowOneAnotherAndOneAloneWhereThatIsAskedFor(t *testing.T) {
	tools := strictTools(t)
	w := func(f *Format, name, args string) string { return f.Write(name, args) }
	two := map[*Format]string{
		Llama:         w(Llama, "get_weather", good) + "; " + w(Llama, "now", `{"zone": "UTC"}`),
		Functionary32: w(Functionary32, "get_weather", good) + ">>>" + w(Functionary32, "now", `{"zone": "UTC"}`),
	}
	for _, f := range formats {
		if f != Llama && f != Harmony && !f.form.once {
			two[f] = several(f, called{"get_weather", good}, called{"now", `{"zone": "UTC"}`})
		}
	}
	for _, one := range []bool{false, true} {
		for f, message := range two {
			g, err := f.Grammar(budget.Default(), tools, CallConstraint{Single: one})
			if err != nil {
				t.Fatal(err)
			}
			s, n, _ := g.Start().Read([]byte(message))
			if got := n == len(message) && s.Accepts(); got == one {
				t.Errorf("%s, one alone %v: %q is accepted: %v", f.Name, one, message, got)
			}
		}
	}
}

func TestMarksThatAreTokensStandForThemselvesAlone(t *testing.T) {
	tools := strictTools(t)
	g, err := Hermes.Grammar(budget.Default(), tools, CallConstraint{Special: func(string) bool { return true }, Thought: [2]string{"<think>", "</think>"}})
	if err != nil {
		t.Fatal(err)
	}
	const open, end = grammar.Special + "<tool_call>", grammar.Special + "</tool_call>"
	call := "\n" + `{"name": "get_weather", "arguments": ` + good + "}\n"
	for message, want := range map[string]bool{
		"Text" + open + call + end: true,
		grammar.Special + "<think>I may write <tool_call> and " + open + grammar.Special + "</think>\n\n" + open + call + end: true,
		grammar.Special + "<think>" + open + call + end:                                                                       true, // a thought that has no end
		"<tool_call>": false, // spelt out it is a mark all the same
		open + "\n" + `{"name": "get_weather", "arguments": {"city": "B` + end + `", "days": 3}}` + "\n" + end: false, // within a string
	} {
		s, n, _ := g.Start().Read([]byte(message))
		if got := n == len(message) && s.Accepts(); got != want {
			t.Errorf("%q is accepted: %v, want %v", message, got, want)
		}
	}
}

func TestArgumentsHaveThePropertiesThatTheSchemaListsAlone(t *testing.T) {
	tools := []Tool{{Name: "f", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)}}
	g, err := Hermes.Grammar(budget.Default(), tools, CallConstraint{Required: true})
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]bool{`{"a": 1}`: true, `{"a": 1, "b": 2}`: false} {
		message := Hermes.Write("f", arguments)
		s, n, _ := g.Start().Read([]byte(message))
		if got := n == len(message) && s.Accepts(); got != want {
			t.Errorf("%s is accepted: %v, want %v", arguments, got, want)
		}
	}
}

func TestGptOssMayThinkBeforeACallThatMustBe(t *testing.T) {
	tools := strictTools(t)
	g, err := Harmony.Grammar(budget.Default(), tools, CallConstraint{Required: true})
	if err != nil {
		t.Fatal(err)
	}
	const thought = "<|channel|>analysis<|message|>They ask.<|end|><|start|>assistant"
	for message, want := range map[string]bool{
		thought + Harmony.Write("get_weather", good):                                      true,
		thought + " to=functions.get_weather<|channel|>commentary json<|message|>" + good: true,
		thought + "<|channel|>final<|message|>Two.":                                       false,
		"<|channel|>final<|message|>Two.":                                                 false,
	} {
		s, n, _ := g.Start().Read([]byte(message))
		if got := n == len(message) && s.Accepts(); got != want {
			t.Errorf("%q is accepted: %v, want %v", message, got, want)
		}
	}
}

func TestASchemaThatCannotBeHeldToIsNamedOrForAToolThatIsNotStrictAnyObject(t *testing.T) {
	const bad = `{"type":"object","$dynamicRef":"#x"}`
	for _, f := range formats {
		tools := []Tool{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "g", Schema: json.RawMessage(bad), Strict: true}}
		if _, err := f.Grammar(budget.Default(), tools, CallConstraint{}); err == nil || !strings.Contains(err.Error(), "the tool g") {
			t.Errorf("%s: %v, want the tool's name", f.Name, err)
		}
		tools[1].Strict = false
		g, err := f.Grammar(budget.Default(), tools, CallConstraint{Required: true})
		if err != nil {
			t.Fatal(err)
		}
		message := f.Write("g", `{"a": [1]}`)
		if s, n, _ := g.Start().Read([]byte(message)); n != len(message) || !s.Accepts() {
			t.Errorf("%s: %q is refused behind %q", f.Name, message, message[:n])
		}
	}
}
