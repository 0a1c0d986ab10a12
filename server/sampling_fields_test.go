package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
)

// generated returns the text of a chat with these fields, whole or streamed.
func (f *fixture) generated(t *testing.T, fields string) (text, finish string) {
	t.Helper()
	status, _, answer := f.post("/v1/chat/completions", chatBody(fields))
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", fields, status, answer)
	}
	c := readSearched(t, answer).Choices[0]
	_, _, stream := f.post("/v1/chat/completions", chatBody(fields+`,"stream":true`))
	streamed := ""
	for _, chunk := range parts[searched](t, stream) {
		if d := chunk.Choices[0].Delta.Content; d != nil {
			streamed += *d
		}
	}
	if streamed != c.Message.Content {
		t.Errorf("%s: streamed %q, whole %q", fields, streamed, c.Message.Content)
	}
	return c.Message.Content, *c.FinishReason
}

func TestOtherNamesMeanTheSame(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	tok := words()
	apples := tok.Encode(nil, " apples", tokenizer.Options{})
	var ids, list []string
	for _, id := range apples {
		ids = append(ids, fmt.Sprintf(`"%d":40`, id))
		list = append(list, fmt.Sprintf(`[%d,40]`, id))
	}
	const seed = `,"seed":4,"max_tokens":20,"temperature":0.7`
	for _, c := range [][2]string{
		{seed, strings.Replace(seed, "max_tokens", "n_predict", 1)},
		{`,"seed":4,"temperature":0,"stop":"never"`, `,"seed":4,"temperature":0,"stop":"never","n_predict":-1,"max_tokens":3`},
		{seed + `,"logit_bias":{` + strings.Join(ids, ",") + `}`, seed + `,"logit_bias":[` + strings.Join(list, ",") + `]`},
		{seed + `,"logit_bias":{` + strings.Join(ids, ",") + `}`, seed + `,"logit_bias":[[" apples",40]]`},
		{seed + `,"repetition_penalty":5`, seed + `,"repeat_penalty":5,"repeat_last_n":-1`},
		{seed, seed + `,"repeat_penalty":5,"repeat_last_n":0`},
		{seed, seed + `,"repeat_penalty":1`},
	} {
		a, _ := f.generated(t, c[0])
		if b, _ := f.generated(t, c[1]); a != b {
			t.Errorf("%s says %q, %s says %q", c[0], a, c[1], b)
		}
	}
	_, _, answer := f.post("/v1/completions", `{"prompt":"Hi","max_completion_tokens":3,"ignore_eos":true}`)
	if got := wholeText(t, answer, 1).Usage.Completion; got != 3 {
		t.Errorf("max_completion_tokens of 3 gave %d tokens", got)
	}
	with, without := startWithBOS(t), 0
	for _, fields := range []string{"", `,"add_special_tokens":false`} {
		_, _, answer := with.post("/v1/completions", `{"prompt":"Hi","max_tokens":1`+fields+`}`)
		n := wholeText(t, answer, 1).Usage.Prompt
		if fields != "" && n != without-1 {
			t.Errorf("without special tokens the prompt has %d tokens, with them %d", n, without)
		}
		without = n
	}
}

func TestTokensOfALogitBiasOfFalseAreNeverSampled(t *testing.T) {
	f := start(t, says(t, "12"), nil)
	first := words().Encode(nil, "12", tokenizer.Options{})[0]
	if text, _ := f.generated(t, fmt.Sprintf(`,"temperature":0,"max_tokens":1,"logit_bias":[[%d,false]]`, first)); strings.HasPrefix(text, "1") {
		t.Errorf("said %q", text)
	}
}

func TestWhatARequestForbidsHoldsInAnswersOfEveryKind(t *testing.T) {
	f := start(t, says(t, "Twelve apples.\nAnswer: 12"), nil)
	for _, scaling := range []string{"", `,"test_time_scaling":"sc3"`, `,"test_time_scaling":"beam4x2;verifier=logprob"`} {
		if text, _ := f.generated(t, `,"seed":1,"max_tokens":30,"bad_words":["apples"]`+scaling); strings.Contains(text, "apples") || !strings.HasPrefix(text, "Twelve") {
			t.Errorf("%s: %q", scaling, text)
		}
		if text, finish := f.generated(t, `,"seed":1,"min_tokens":40,"max_tokens":50`+scaling); finish == "stop" && len(text) < 40 || !strings.HasPrefix(text, "Twelve apples.\nAnswer: 12") {
			t.Errorf("%s: %q (%s)", scaling, text, finish)
		}
		if text, _ := f.generated(t, `,"seed":1,"stop":"Ans","include_stop_str_in_output":true`+scaling); text != "Twelve apples.\nAns" {
			t.Errorf("%s: %q, want the stop string in it", scaling, text)
		}
	}
	if text, _ := f.generated(t, `,"temperature":0,"min_tokens":1,"max_tokens":30,"skip_special_tokens":false`); text != "Twelve apples.\nAnswer: 12" {
		t.Errorf("with special tokens: %q", text)
	}
}

func TestThinkingIsAskedForInManyWays(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(`{{ enable_thinking is defined and enable_thinking }} {{ reasoning_effort or '-' }}`)
	for fields, want := range map[string]string{
		"":                               "False -",
		`,"reasoning_effort":"none"`:     "False none",
		`,"reasoning_effort":"low"`:      "True low",
		`,"reasoning_effort":null`:       "False -",
		`,"enable_thinking":true`:        "True -",
		`,"reasoning":{"effort":"high"}`: "True high",
		`,"reasoning_effort":"low","enable_thinking":false`:                          "False low",
		`,"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":false}`: "False low",
		`,"chat_template_kwargs":{"reasoning_effort":"odd"}`:                         "False odd",
	} {
		if got, _ := f.applied(chatBody(fields)); got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
	f.withTemplate(template.ChatML)
	g := start(t, says(t, thoughtful), nil)
	_, _, answer := g.post("/v1/chat/completions", chatBody(`,"include_reasoning":false`))
	_, _, stream := g.post("/v1/chat/completions", chatBody(`,"include_reasoning":false,"stream":true`))
	for _, a := range [][]byte{answer, stream} {
		if strings.Contains(string(a), "reasoning") || !strings.Contains(string(a), "Answer") {
			t.Errorf("without reasoning: %s", a)
		}
	}
}

func TestDRYEndsARepetitionUnlessABreakerPartsIt(t *testing.T) {
	const text = "one two three one two three one two three"
	f := start(t, says(t, text), nil)
	ask := func(fields string) string {
		t.Helper()
		text, _ := f.generated(t, `,"temperature":0,"max_tokens":60`+fields)
		return text
	}
	const dry = `,"dry_multiplier":100,"dry_base":10`
	for fields, repeats := range map[string]bool{
		"": true, dry: false, dry + `,"dry_allowed_length":200`: true, dry + `,"dry_penalty_last_n":0`: true,
		dry + `,"dry_sequence_breakers":["e"," "]`: true, dry + `,"dry_sequence_breakers":[]`: false, dry + `,"dry_sequence_breakers":["\n"]`: false,
	} {
		if got := ask(fields); (got == text) != repeats {
			t.Errorf("with %q the answer is %q, want the repetition: %v", fields, got, repeats)
		}
	}
}
