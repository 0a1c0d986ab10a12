package toolcall

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
)

// ofTemplate derives a format from a template of testdata.
func ofTemplate(name string) *Format {
	source, err := os.ReadFile(filepath.Join("testdata", name+".jinja"))
	if err != nil {
		panic(err)
	}
	t, err := template.Parse(string(source))
	if err != nil {
		panic(err)
	}
	f, err := Of(t)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	named := *f
	named.Name = name
	return &named
}

// The formats of templates that show calls, and of some that do not.
var (
	Mistral       = ofTemplate("mistral")
	MistralArgs   = ofTemplate("mistral-args")
	QwenCoder     = ofTemplate("qwen3-coder")
	DeepSeek      = ofTemplate("deepseek")
	Kimi          = ofTemplate("kimi")
	Functionary31 = ofTemplate("functionary-3.1")
	Functionary32 = ofTemplate("functionary-3.2")
	Gemma         = ofTemplate("gemma4")
	GLM           = ofTemplate("glm")
	Seed          = ofTemplate("seed")
	Invoke        = ofTemplate("invoke")
	Typed         = ofTemplate("typed")
	Section       = ofTemplate("section")
	List          = ofTemplate("list")
	Keyed         = ofTemplate("keyed")
	Numbered      = ofTemplate("numbered")
	Python        = ofTemplate("python")
	PythonBare    = ofTemplate("python-bare")
	PythonLines   = ofTemplate("python-lines")
	Turn          = ofTemplate("turn")
	Recipients    = ofTemplate(filepath.Join("thoughts", "recipients"))
	Tags          = ofTemplate(filepath.Join("thoughts", "tags"))
	Granite       = ofTemplate("granite3")
	Phi           = ofTemplate("phi4")
	LFM           = ofTemplate("lfm2")
)

// formats are all forms.
var formats = []*Format{
	Hermes, Llama, Mistral, QwenCoder, DeepSeek, Kimi, Functionary31, Functionary32, Gemma, Harmony, // the order of the fuzzer's seeds
	MistralArgs, GLM, Seed, Invoke, Typed, Section, List, Keyed, Numbered, Python, PythonBare, Granite, Phi, LFM,
	PythonLines, Turn, Recipients, Tags,
}

// called is a call in a test.
type called struct{ name, arguments string }

// several writes the calls of one message.
func several(f *Format, calls ...called) string {
	form := &f.form
	var b strings.Builder
	b.WriteString(form.open)
	for i, c := range calls {
		if i > 0 {
			b.WriteString(form.between)
		}
		call := strings.TrimSuffix(strings.TrimPrefix(f.Write(c.name, c.arguments), form.open), form.close)
		b.WriteString(strings.Replace(call, ":0", fmt.Sprintf(":%d", i), 1))
	}
	return b.String() + form.close
}

// tools are the tests' tools: days is a number.
var tools = []Tool{
	{Name: "get_weather", Text: func(a string) bool { return a != "days" && a != "places" }},
	{Name: "now"},
}

// read returns what a parser makes of a message that comes in pieces: its text, its
// reasoning, and its calls, one a line.
func read(t *testing.T, f *Format, pieces ...string) string {
	t.Helper()
	p := f.NewParser(tools)
	var text, reasoning strings.Builder
	var names []string
	var args []string
	for i, piece := range pieces {
		for _, part := range p.Push(piece, i == len(pieces)-1) {
			text.WriteString(part.Text)
			reasoning.WriteString(part.Reasoning)
			c := part.Call
			if c == nil {
				continue
			}
			if c.Name != "" {
				names, args = append(names, c.Name), append(args, "")
			}
			if c.Index != len(names)-1 {
				t.Fatalf("%s: a piece of call %d after %d names", f.Name, c.Index, len(names))
			}
			args[c.Index] += c.Arguments
		}
	}
	if p.Calls() != len(names) {
		t.Fatalf("%s: Calls() = %d, of %d names", f.Name, p.Calls(), len(names))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", text.String())
	if reasoning.Len() > 0 {
		fmt.Fprintf(&b, " after %q", reasoning.String())
	}
	for i := range names {
		fmt.Fprintf(&b, "\n%s %s", names[i], args[i])
	}
	return b.String()
}

const berlin = `{"city": "Berlin", "say": "a \"}]</tool_call>"}`

// messages are written by models of each family, with their calls and text.
var messages = []struct {
	format  *Format
	message string
	want    string
}{
	{Hermes, "No tool helps here. 1 < 2", `"No tool helps here. 1 < 2"`},
	{Hermes, "I will look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + berlin + "}\n</tool_call>", "\"I will look.\"\nget_weather " + berlin},
	{Hermes, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": [1, {\"b\": 2}]}}\n</tool_call>",
		"\"\"\nget_weather {}\nnow {\"a\": [1, {\"b\": 2}]}"},
	{Hermes, `<tool_call>{"arguments": ` + berlin + `, "name": "get_weather"}</tool_call>`, "\"\"\nget_weather " + berlin},
	{Hermes, `<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Berlin\"}"}</tool_call>`, "\"\"\nget_weather {\"city\": \"Berlin\"}"},
	{Hermes, `<tool_call>{"name": "now"}</tool_call> Done.`, "\"Done.\"\nnow {}"},
	{Hermes, `<tool_call>not JSON</tool_call>`, `"<tool_call>not JSON"`},
	{Hermes, `<tool_call>{"name": "no name at all!", "arguments": {}}`, `"<tool_call>{\"name\": \"no name at all!\", \"arguments\": {}}"`},
	{Hermes, `<tool_call>{"name": "get_weather", "arguments": {"city": "Ber`, "\"\"\nget_weather {\"city\": \"Ber"},
	{Hermes, `a <tool_c`, `"a <tool_c"`},
	{Hermes, `<tool_call>{"name": "now"}</tool_ca`, "\"\"\nnow {}"},
	{Kimi, "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_c", "\"\"\nnow {}"},
	{QwenCoder, "<function=get_weather>\n<parameter=city>\na</function>b\n</parameter>\n<parameter=days>\n3\n</function>\n</tool_call>", "\"\"\nget_weather {\"city\": \"a</function>b\", \"days\": 3}"},
	{Harmony, " to=functions.now<|channel|>commentary json<|message|>{}<|call|>", "\"\"\nnow {}"},
	{Harmony, "to be or not", `"to be or not"`},
	{Llama, `{"id": 1, "name": "now", "parameters": {}}`, `"{\"id\": 1, \"name\": \"now\", \"parameters\": {}}"`},
	{Llama, `{"name": "get_weather", "parameters": ` + berlin + `}`, "\"\"\nget_weather " + berlin},
	{Llama, `<|python_tag|>{"type": "function", "name": "get_weather", "parameters": {}}; {"name": "now", "parameters": {}}`, "\"\"\nget_weather {}\nnow {}"},
	{Llama, `{"name": "Ada", "born": 1815}`, `"{\"name\": \"Ada\", \"born\": 1815}"`},
	{Llama, `The set {1, 2}.`, `"The set {1, 2}."`},
	{Mistral, `[TOOL_CALLS][{"name": "get_weather", "arguments": ` + berlin + `}, {"name": "now", "arguments": {}}]`, "\"\"\nget_weather " + berlin + "\nnow {}"},
	{MistralArgs, `Well.[TOOL_CALLS]get_weather[ARGS]` + berlin + `[TOOL_CALLS]now[CALL_ID]123456789[ARGS]{}`, "\"Well.\"\nget_weather " + berlin + "\nnow {}"},
	{QwenCoder, "Look:\n<tool_call>\n<function=get_weather>\n<parameter=city>\nBerlin <&> \"x\"\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=places>\n[\"a\"]\n</parameter>\n</function>\n</tool_call>",
		"\"Look:\"\nget_weather {\"city\": \"Berlin <&> \\\"x\\\"\", \"days\": 3, \"places\": [\"a\"]}"},
	{QwenCoder, "<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>", "\"\"\nnow {}\nget_weather {\"city\": \"12\"}"},
	{QwenCoder, "<tool_call>\n<function=get_weather>\n<parameter=city>\nBer", "\"\"\nget_weather {"},
	{DeepSeek, "Let me see.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" + berlin + "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"\"Let me see.\"\nget_weather " + berlin + "\nnow {}"},
	{DeepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" + berlin + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "\"\"\nget_weather " + berlin},
	{Kimi, "Yes.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>" + berlin + "<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
		"\"Yes.\"\nget_weather " + berlin + "\nnow {}"},
	{Functionary31, `<function=get_weather>` + berlin + `</function><function=now>{}</function>`, "\"\"\nget_weather " + berlin + "\nnow {}"},
	{Functionary32, "all\nI look it up.>>>get_weather\n" + berlin + ">>>now\n{}", "\"I look it up.\"\nget_weather " + berlin + "\nnow {}"},
	{Functionary32, "Just text", `"Just text"`},
	{Gemma, `I look.<|tool_call>call:get_weather{city:<|"|>Ber"lin\n{}<|"|>,days:3,places:[<|"|>a<|"|>,true,{x:-1.5e3}]}<tool_call|>`,
		"\"I look.\"\nget_weather {\"city\": \"Ber\\\"lin\\\\n{}\", \"days\": 3, \"places\": [\"a\", true, {\"x\": -1.5e3}]}"},
	{Gemma, `<|tool_call>call:now{}<tool_call|><|tool_call>call:get_weather{<|"|>city<|"|>: "B\"n", unit: Celsius}<tool_call|>`,
		"\"\"\nnow {}\nget_weather {\"city\": \"B\\\"n\", \"unit\": \"Celsius\"}"},
	{Gemma, `<|tool_call>call:get_weather{city:<|"|>Ber`, "\"\"\nget_weather {\"city\": \"Ber"},
	{Gemma, `<|tool_call>call:get_weather{city:<|"`, "\"\"\nget_weather {\"city\": "},
	{Gemma, `<|tool_call>call:get_weather{near:[true,fal`, "\"\"\nget_weather {\"near\": [true"},
	{Gemma, `<|tool_call>not a call<tool_call|>`, `"<|tool_call>not a call"`},
	{Harmony, "<|channel|>analysis<|message|>Think 1 < 2.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>" + berlin + "<|call|>",
		"\"\" after \"Think 1 < 2.\"\nget_weather " + berlin},
	{Harmony, "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>final<|message|>Two.", "\"Two.\" after \"Think.\""},
	{Harmony, "<|start|>assistant to=functions.now<|channel|>commentary<|message|>{}<|call|>", "\"\"\nnow {}"},
	{GLM, "I look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value> a </arg_key> \"b\"\n</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>",
		"\"I look.\"\nget_weather {\"city\": \" a </arg_key> \\\"b\\\"\\n\", \"days\": 3}\nnow {}"},
	{GLM, "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Bonn</arg_value></tool_call><tool_call>now</tool_call>", "\"\"\nget_weather {\"city\": \"Bonn\"}\nnow {}"},
	{GLM, "<tool_call>is not called", `"<tool_call>is not called"`},
	{GLM, "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Bo", "\"\"\nget_weather {"},
	{Seed, "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Bonn</parameter>\n<parameter=places>['x', None, {'p': True}]</parameter>\n</function>\n</seed:tool_call>", "\"\"\nget_weather {\"city\": \"Bonn\", \"places\": [\"x\", null, {\"p\": true}]}"},
	{Invoke, "<x:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">a\n</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n</x:tool_call>", "\"\"\nget_weather {\"city\": \"a\\n\"}\nnow {}"},
	{Invoke, "<x:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\"><![CDATA[</parameter> & ]]></parameter></invoke></x:tool_call>", "\"\"\nget_weather {\"city\": \"</parameter> & \"}"},
	{Typed, "<｜DSML｜calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">12</｜DSML｜parameter>\n<｜DSML｜parameter name=\"unit\" string=\"false\">[1]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜calls>", "\"\"\nget_weather {\"city\": \"12\", \"unit\": [1]}"},
	{Section, "<tool_calls>\n{\"name\": \"get_weather\", \"arguments\": " + berlin + "}\n{\"name\": \"now\", \"arguments\": {}}\n</tool_calls>", "\"\"\nget_weather " + berlin + "\nnow {}"},
	{Keyed, "Yes.<|tools_prefix|>[{\"get_weather\": " + berlin + "}, {\"now\": {}}]<|tools_suffix|>", "\"Yes.\"\nget_weather " + berlin + "\nnow {}"},
	{Numbered, "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": " + berlin + "},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"now\", \"parameters\": {}}\n]<|END_ACTION|>", "\"\"\nget_weather " + berlin + "\nnow {}"},
	{Python, "I look.<|tool_call_start|>[get_weather(city=\"Bo\\\"nn\", unit='it's', days=3, places=[True, None, {'a': -1.5e3}]), now()]<|tool_call_end|>Done.",
		"\"I look.Done.\"\nget_weather {\"city\": \"Bo\\\"nn\", \"unit\": \"it's\", \"days\": 3, \"places\": [true, null, {\"a\": -1.5e3}]}\nnow {}"},
	{Python, "<|tool_call_start|>[{\"name\": \"now\", \"arguments\": {}}]<|tool_call_end|>", "\"\"\nnow {}"},
	{Python, "<|tool_call_start|>[get_weather(city='Bonn', unit='C", "\"\"\nget_weather {\"city\": \"Bonn\""},
	{PythonBare, "[get_weather(city='Bonn'), now()]", "\"\"\nget_weather {\"city\": \"Bonn\"}\nnow {}"},
	{PythonBare, "[1] is a list, f(x=1) is none.", `"[1] is a list, f(x=1) is none."`},
	{PythonBare, "[f(x=1)]", `"[f(x=1)]"`},
	{PythonLines, "I look.<function_calls>\nget_weather(city='Bonn', days=3, near=[true, null])\nnow()\n</function_calls>", "\"I look.\"\nget_weather {\"city\": \"Bonn\", \"days\": 3, \"near\": [true, null]}\nnow {}"},
	{Turn, "I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"now\", \"arguments\": {}}<|message_sep|>\n\n", "\"I look.\"\nnow {}"},
	{Turn, "A function call<|message_sep|>\n\n", "\"A function call\""},
	{Recipients, " to=now<|message|><x:calls>\n<x:invoke name=\"now\">\n</x:invoke>\n</x:calls><|eom|><|start|>assistant to=get_weather<|message|><x:calls>\n<x:invoke name=\"get_weather\">\n<x:parameter name=\"city\">Bonn</x:parameter>\n</x:invoke>\n</x:calls>",
		"\"\"\nnow {}\nget_weather {\"city\": \"Bonn\"}"},
	{Recipients, "to be or not<|eom|><|start|>assistant to=user<|message|>assistants to be", "\"to be or notassistants to be\""},
	{Tags, "<|open|>tools<|sep|><|open|>call tool=\"get_weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>12 <|open|><|close|>argument<|sep|><|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool=\"now\" index=\"2\"<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
		"\"\"\nget_weather {\"city\": \"12 <|open|>\", \"days\": 3}\nnow {}"},
	{Granite, "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]", "\"\"\nnow {}"},
	{Phi, "<|tool_call|>{\"name\": \"now\", \"arguments\": {}}<|/tool_call|>", "\"\"\nnow {}"},
}

func TestEachFamilysCallsAreReadHoweverTheyAreDivided(t *testing.T) {
	for _, m := range messages {
		t.Run(m.format.Name, func(t *testing.T) {
			if got := read(t, m.format, m.message); got != m.want {
				t.Errorf("%q:\n%s\nwant\n%s", m.message, got, m.want)
			}
			if got := read(t, m.format, strings.Split(m.message, "")...); got != m.want {
				t.Errorf("%q letter by letter:\n%s\nwant\n%s", m.message, got, m.want)
			}
			for i := range len(m.message) {
				if got := read(t, m.format, m.message[:i], m.message[i:], ""); got != m.want {
					t.Errorf("%q divided at byte %d:\n%s\nwant\n%s", m.message, i, got, m.want)
					break
				}
			}
		})
	}
}

func TestTheRestOfACharacterBehindACallIsText(t *testing.T) {
	for _, message := range []string{"{\"name\":\"get_weather\"0\x8e", "{\"name\":\"get_weather\"0\uFFFD", "{\"name\":\"get_weather\"0<|py\uFFFD", "{\"name\":\"get_weather\"0<|py "} {
		whole := read(t, Llama, message)
		for at := range len(message) {
			if parts := read(t, Llama, message[:at], message[at:], ""); parts != whole {
				t.Errorf("%q divided at %d:\n%s\nwhole:\n%s", message, at, parts, whole)
			}
		}
	}
}

func TestACallEndsTheSameWithoutItsEndMarkHoweverItIsDivided(t *testing.T) {
	for _, message := range []string{"<function=f><parameter=a></parameter>0", "<function=f>0<parameter=a>1</parameter>0", "<function=f>0"} {
		qwen := formats[slices.IndexFunc(formats, func(f *Format) bool { return f.Name == "qwen3-coder" })]
		whole := read(t, qwen, message)
		for at := range len(message) + 1 {
			if parts := read(t, qwen, message[:at], message[at:], ""); parts != whole {
				t.Errorf("%q divided at %d:\n%s\nwhole:\n%s", message, at, parts, whole)
			}
		}
	}
}

func TestWhatAFormatWritesItReads(t *testing.T) {
	for _, f := range formats {
		call := f.Write("get_weather", berlin)
		if got, want := read(t, f, call), "\"\"\nget_weather "+berlin; got != want {
			t.Errorf("%s: %q is read as\n%s\nwant\n%s", f.Name, call, got, want)
		}
	}
}

func FuzzAMessageIsTextAndCallsAndNothingIsLost(f *testing.F) {
	all := formats
	for _, m := range messages {
		f.Add(uint8(slices.Index(all, m.format)), m.message, 3)
	}
	f.Fuzz(func(t *testing.T, format uint8, message string, at int) {
		fm := all[int(format)%len(all)]
		at = max(0, min(at, len(message)))
		whole := read(t, fm, message)
		if parts := read(t, fm, message[:at], message[at:]); parts != whole {
			t.Errorf("%s: %q divided at %d:\n%s\nwhole:\n%s", fm.Name, message, at, parts, whole)
		}
	})
}

func TestArgumentsOfWholeCallsAreJSON(t *testing.T) {
	for _, m := range messages {
		_, calls, _ := strings.Cut(m.want, "\n")
		for line := range strings.SplitSeq(calls, "\n") {
			if _, args, ok := strings.Cut(line, " "); ok && strings.HasSuffix(args, "}") && !json.Valid([]byte(args)) {
				t.Errorf("%s: arguments %s", m.format.Name, args)
			}
		}
	}
}
