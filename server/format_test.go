package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// invoice is a schema with most of what schemas are used for.
const invoice = `{"type": "object", "additionalProperties": false, "required": ["id", "lines", "kind", "paid"],
  "properties": {
    "id": {"type": "string", "pattern": "^INV-[0-9]{3}$"},
    "kind": {"enum": ["retail", "whole\"sale", 7, null]},
    "paid": {"type": "boolean"},
    "due": {"type": "string", "format": "date"},
    "lines": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#/$defs/line"}}},
  "$defs": {"line": {"anyOf": [
    {"type": "object", "required": ["n", "price"], "additionalProperties": false, "maxProperties": 2,
     "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 12}, "price": {"type": "number", "exclusiveMinimum": 0, "maximum": 99, "multipleOf": 0.25}}},
    {"type": "string", "minLength": 2, "maxLength": 6}]}}}`

// validator returns an independent judge of a schema.
func validator(t *testing.T, text string) func(answer string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(answer string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// contents returns the texts and finish reasons of an answer's choices.
func contents(t *testing.T, answer []byte) (texts, ends []string) {
	t.Helper()
	var a struct {
		Choices []struct {
			Text    string
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatal(err)
	}
	for _, c := range a.Choices {
		texts, ends = append(texts, c.Text+c.Message.Content), append(ends, c.Finish)
	}
	return texts, ends
}

func TestStructuredAnswersAreValidAtAnyTemperature(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	f := real(t, nil)
	valid := validator(t, invoice)
	for i, temperature := range []float64{0, 0.7, 1, 2} {
		for _, sampling := range []string{"", `,"top_p":0.5,"repetition_penalty":1.3`, `,"frequency_penalty":2,"presence_penalty":2,"logprobs":true,"top_logprobs":3`}[:sweep.Of(t, 1+2*(i%2), 3)] {
			body := fmt.Sprintf(`{"messages":[{"role":"user","content":"An invoice, please."}],"n":4,"seed":%d,"max_tokens":400,"temperature":%v%s,
				"response_format":{"type":"json_schema","json_schema":{"name":"invoice","strict":true,"schema":%s}}}`, i, temperature, sampling, invoice)
			status, _, answer := f.post("/v1/chat/completions", body)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, answer)
			}
			texts, ends := contents(t, answer)
			for j, text := range texts {
				if ends[j] != "stop" {
					t.Errorf("at %v: the answer ends by %s: %s", temperature, ends[j], text)
				} else if err := valid(text); err != nil {
					t.Errorf("at %v: %v: %s", temperature, err, text)
				}
			}
		}
	}
}

func TestCandidatesOfSearchesAreHeldToTheFormatToo(t *testing.T) {
	sweep.Full(t)
	f := real(t, nil)
	valid := validator(t, invoice)
	for _, plan := range []string{"bon4", "sc4", "beam4x2"} {
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"An invoice, please."}],"seed":3,"max_tokens":300,"temperature":1,"guided_json":%s,
			"test_time_scaling":{"method":"%s"}}`, invoice, map[string]string{"bon4": "best_of_n", "sc4": "self_consistency", "beam4x2": "beam_search"}[plan])
		status, _, answer := f.post("/v1/chat/completions", body)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", plan, status, answer)
		}
		texts, ends := contents(t, answer)
		for i, text := range texts {
			if err := valid(text); ends[i] == "stop" && err != nil {
				t.Errorf("%s: %v: %s", plan, err, text)
			}
		}
	}
}

func TestEveryNameOfAFormatHoldsTheAnswerToIt(t *testing.T) {
	sweep.NoRace(t)
	f := real(t, nil)
	object := regexp.MustCompile(`^\{(.|\n)*\}$`)
	for fields, want := range map[string]*regexp.Regexp{
		`"response_format":{"type":"json_object"}`:                                                  object,
		`"response_format":{"type":"json_object","schema":{"const":{"a":1}}}`:                       regexp.MustCompile(`^\{\s*"a"\s*:\s*1\s*\}$`),
		`"response_format":{"type":"json_schema","schema":{"enum":["x","y"]}}`:                      regexp.MustCompile(`^"[xy]"$`),
		`"guided_json":{"type":"boolean"}`:                                                          regexp.MustCompile(`^(true|false)$`),
		`"guided_json":"{\"type\":\"null\"}"`:                                                       regexp.MustCompile(`^null$`),
		`"guided_regex":"[A-C]{3}-\\d+0"`:                                                           regexp.MustCompile(`^[A-C]{3}-\d+0$`),
		`"guided_choice":["yes","no","may be"]`:                                                     regexp.MustCompile(`^(yes|no|may be)$`),
		`"guided_grammar":"root ::= \"<\" (root | [0-9]) \">\""`:                                    regexp.MustCompile(`^<+[0-9]>+$`),
		`"grammar":"root ::= [a-c]{2} end\nend ::= \"!\" | \"?\""`:                                  regexp.MustCompile(`^[a-c]{2}[!?]$`),
		`"json_schema":{"type":"integer","minimum":10,"maximum":12}`:                                regexp.MustCompile(`^1[0-2]$`),
		`"structured_outputs":{"choice":["é","è"]}`:                                                 regexp.MustCompile(`^[éè]$`),
		`"structured_outputs":{"json":{"const":1}}`:                                                 regexp.MustCompile(`^1$`),
		`"structured_outputs":{"regex":"a|b"}`:                                                      regexp.MustCompile(`^[ab]$`),
		`"structured_outputs":{"grammar":"root ::= \"z\""}`:                                         regexp.MustCompile(`^z$`),
		`"structured_outputs":{"json_object":true}`:                                                 object,
		`"guided_json":{},"grammar":"","structured_outputs":null,"response_format":{"type":"text"}`: regexp.MustCompile(``),
	} {
		for path, begin := range map[string]string{
			"/v1/chat/completions": `{"messages":[{"role":"user","content":"Hi"}],`,
			"/v1/completions":      `{"prompt":"Hi","n":2,`,
		} {
			status, _, answer := f.post(path, begin+`"max_tokens":200,"temperature":0.9,"seed":1,`+fields+`}`)
			if status != http.StatusOK {
				t.Errorf("%s: %d %s", fields, status, answer)
				continue
			}
			texts, ends := contents(t, answer)
			for i, text := range texts {
				if ends[i] == "stop" && !want.MatchString(text) {
					t.Errorf("%s %s: %q", path, fields, text)
				}
			}
		}
	}
}

func TestAnAnswerWarnsOfFormatsOfStringsThatItIsNotHeldTo(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for format, want := range map[string]string{
		"date": "", "path": "", "colour": `strings are not held to unknown formats: "colour"`, `a\r\nX-Other: \u00e9`: `strings are not held to unknown formats: "a\r\nX-Other: \u00e9"`,
	} {
		status, header, answer := f.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":3,"guided_json":{"properties":{"a":{"type":"string","format":"`+format+`"}}}}`)
		if status != http.StatusOK || header.Get("X-Lutra-Warning") != want {
			t.Errorf("%s: %d %s, warned %q, want %q", format, status, answer, header.Get("X-Lutra-Warning"), want)
		}
	}
}

func TestAFormatThatCannotBeHeldToIsRefusedByName(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for fields, want := range map[string]struct{ code, param, text string }{
		`"response_format":{"type":"xml"}`:                                             {jsonread.CodeUnsupported, "response_format.type", "xml"},
		`"response_format":{"type":"json_schema","json_schema":{}}`:                    {jsonread.CodeMissing, "response_format.json_schema.schema", "required"},
		`"response_format":{"type":"json_schema","json_schema":{"schema":{"type":7}}}`: {jsonread.CodeValue, "response_format", "type"},
		`"guided_json":{"type":"array","uniqueItems":true}`:                            {jsonread.CodeValue, "guided_json", "uniqueItems"},
		`"guided_json":{"$ref":"https://example.com/schema"}`:                          {jsonread.CodeValue, "guided_json", "$ref"},
		`"guided_json":{"type":"integer","minimum":2,"maximum":1}`:                     {jsonread.CodeValue, "guided_json", "no value"},
		`"guided_json":7`:                               {jsonread.CodeType, "guided_json", "schema"},
		`"guided_regex":"(a"`:                           {jsonread.CodeValue, "guided_regex", "missing )"},
		`"guided_choice":["a",""]`:                      {jsonread.CodeValue, "guided_choice[1]", "1 to"},
		`"grammar":"root ::= root"`:                     {jsonread.CodeValue, "grammar", "begins with itself"},
		`"grammar":"root ::= \"a\"","guided_regex":"a"`: {jsonread.CodeValue, "guided_regex", "together"},
		`"guided_regex":"a","min_tokens":1`:             {jsonread.CodeValue, "guided_regex", "min_tokens"},
		`"guided_regex":"a","ignore_eos":true`:          {jsonread.CodeValue, "guided_regex", "ignore_eos"},
		`"structured_outputs":{"structural_tag":"x"}`:   {jsonread.CodeUnsupported, "structured_outputs.structural_tag", "support"},
	} {
		status, _, answer := f.post("/v1/chat/completions", chatBody(`,"max_tokens":9,`+fields))
		wantError(t, fields, status, answer, 400, want.code, want.param)
		if !strings.Contains(string(answer), want.text) {
			t.Errorf("%s: %s does not mention %q", fields, answer, want.text)
		}
	}
}

func TestSixtyFourObjectsWithinOneAnotherAreAFormat(t *testing.T) {
	f := start(t, says(t, "No."), nil)
	schema := `{"type":"integer","maximum":9}`
	for range 64 {
		schema = `{"type":"object","properties":{"a":` + schema + `},"required":["a"],"additionalProperties":false}`
	}
	status, _, answer := f.post("/v1/chat/completions", chatBody(`,"max_tokens":2000,"temperature":0,"response_format":{"type":"json_schema","json_schema":{"name":"deep","schema":`+schema+`}}`))
	var got goopenai.ChatCompletionResponse
	if err := json.Unmarshal(answer, &got); err != nil || status != 200 {
		t.Fatalf("%s", answer)
	}
	text := got.Choices[0].Message.Content
	if !json.Valid([]byte(text)) || strings.Count(text, "{") != 64 {
		t.Errorf("%s", text)
	}
}

func TestEndpointsThatHoldAnswersToNoFormatRefuseIt(t *testing.T) {
	f := real(t, nil)
	for _, field := range []string{`"grammar":"root ::= \"a\""`, `"response_format":{"type":"json_object"}`, `"guided_json":{"type":"null"}`} {
		name, _, _ := strings.Cut(strings.TrimPrefix(field, `"`), `"`)
		status, _, answer := f.post("/v1/rewards", `{"model":"lutra-tiny-prm","prompt":"What is 2 * 3?","responses":["6"],`+field+`}`)
		wantError(t, field, status, answer, 400, jsonread.CodeUnsupported, name)
	}
}
