package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// endsAfter makes a toy model that follows a prompt of so many tokens with the
// token that ends its turn, and is in two minds about everything else.
func endsAfter(t *testing.T, prompt int) *toy.Model {
	end, _ := words().EOS()
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		for i := range row {
			row[i] = float32((i*7+len(tokens)*13)%11) / 4
		}
		if len(tokens) == prompt {
			row[end] = 50
		}
	}}
}

func TestEchoedLogprobsListTheTokenThatEndsTheText(t *testing.T) {
	prompt := []int{5, 6, 7, 8}
	f := start(t, endsAfter(t, len(prompt)), nil)
	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"prompt":[[5,6,7,8],[9,6,7,8]],"n":2,"max_tokens":1,"temperature":0,"logprobs":1,"echo":true,"stream":%v}`, stream)
		_, _, answer := f.post("/v1/completions", body)
		tokens, logprobs, offsets := make([][]string, 4), make([][]*float64, 4), make([][]int, 4)
		parts := []wireText{}
		if stream {
			parts = chunks[wireText](t, answer)
		} else {
			parts = append(parts, wholeText(t, answer, 4))
		}
		for _, p := range parts {
			for _, c := range p.Choices {
				tokens[c.Index] = append(tokens[c.Index], c.Logprobs.Tokens...)
				logprobs[c.Index] = append(logprobs[c.Index], c.Logprobs.TokenLogprobs...)
				offsets[c.Index] = append(offsets[c.Index], c.Logprobs.TextOffset...)
			}
		}
		for i := range tokens {
			if len(tokens[i]) != len(prompt)+1 || tokens[i][4] != "<|im_end|>" || *logprobs[i][4] < -0.01 {
				t.Errorf("stream %v: choice %d lists %q, want the prompt's %d tokens and <|im_end|>", stream, i, tokens[i], len(prompt))
			}
			if !slices.IsSorted(offsets[i]) {
				t.Errorf("stream %v: text_offset = %v", stream, offsets[i])
			}
		}
	}
	// The harness drops the generated token, and scores the last of the continuation.
	_, _, answer := f.post("/v1/completions", `{"prompt":[5,6,7,8],"max_tokens":1,"temperature":0,"logprobs":1,"echo":true}`)
	c := wholeText(t, answer, 1)
	sum, _ := loglikelihood(c, 3)
	if want := *c.Choices[0].Logprobs.TokenLogprobs[3]; sum != want {
		t.Errorf("the last token scores %v, want %v", sum, want)
	}
	if c.Choices[0].Text != f.model.Decode([]int32{5, 6, 7, 8}) || *c.Choices[0].FinishReason != "stop" {
		t.Errorf("the text is %q, want the prompt's alone", c.Choices[0].Text)
	}
	_, _, answer = f.post("/v1/completions", `{"prompt":[5,6,7,8],"max_tokens":0,"logprobs":1,"echo":true}`)
	if l := wholeText(t, answer, 1).Choices[0].Logprobs; len(l.Tokens) != len(prompt) {
		t.Errorf("without generating it lists %q, want the prompt", l.Tokens)
	}
}

func TestAMessagesLogprobsDoNotListTheTokenThatEndsTheTurn(t *testing.T) {
	f := start(t, says(t, "Twelve."), nil)
	fields := `,"logprobs":true,"top_logprobs":2`
	_, _, answer := f.post("/v1/chat/completions", chatBody(fields))
	c := wholeChat(t, answer, 1)
	spelled := ""
	for _, tok := range c.Choices[0].Logprobs.Content {
		spelled += *tok.Token
	}
	if spelled != "Twelve." {
		t.Errorf("the tokens spell %q, want the message", spelled)
	}
	_, _, stream := f.post("/v1/chat/completions", chatBody(fields+`,"stream":true`))
	spelled = ""
	for _, c := range chunks[wireChat](t, stream) {
		if l := c.Choices[0].Logprobs; l != nil {
			if len(l.Content) == 0 {
				t.Errorf("a chunk lists no tokens: %+v", c.Choices[0])
			}
			for _, tok := range l.Content {
				spelled += *tok.Token
			}
		}
	}
	if spelled != "Twelve." {
		t.Errorf("streamed, the tokens spell %q, want the message", spelled)
	}
}

func TestOffsetsSkipTokensThatAddNothingToTheText(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	_, _, answer := f.post("/v1/completions", `{"prompt":"ab<|im_start|>ä","max_tokens":0,"logprobs":0,"echo":true}`)
	c := wholeText(t, answer, 1).Choices[0]
	text := []rune(c.Text)
	for i, token := range c.Logprobs.Tokens {
		rest := string(text[c.Logprobs.TextOffset[i]:])
		if token != "<|im_start|>" && !strings.HasPrefix(token, "bytes:") && !strings.HasPrefix(rest, token) {
			t.Errorf("token %q is said to begin %q", token, rest)
		}
	}
}

func TestTheNumberOfLogprobsIsBounded(t *testing.T) {
	sweep.NoRace(t)
	f := start(t, &toy.Model{Context: 4096}, nil)
	long := "[5" + strings.Repeat(",6", 2999) + "]"
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/completions", `{"prompt":` + long + `,"n":17,"max_tokens":0,"logprobs":20,"echo":true}`, 400},
		{"/v1/completions", `{"prompt":[` + long + strings.Repeat(","+long, 16) + `],"max_tokens":0,"logprobs":20,"echo":true}`, 400},
		{"/v1/completions", `{"prompt":` + long + `,"n":1,"max_tokens":1,"logprobs":20,"echo":true}`, 200},
		{"/v1/chat/completions", chatBody(`,"n":128,"logprobs":true,"top_logprobs":20`), 400},
		{"/v1/chat/completions", chatBody(`,"n":128,"logprobs":true,"top_logprobs":20,"stream":true`), 400},
		{"/v1/chat/completions", chatBody(`,"n":128,"max_tokens":2,"logprobs":true,"top_logprobs":20`), 200},
		{"/v1/chat/completions", chatBody(`,"n":64,"logprobs":true,"top_logprobs":20,"test_time_scaling":"sc64"`), 400},
	} {
		status, _, answer := f.post(c.path, c.body)
		if status != c.status {
			t.Errorf("%s: %d %.200s, want %d", jsonread.Brief(c.body), status, answer, c.status)
		}
		if c.status == 400 {
			wantError(t, jsonread.Brief(c.body), status, answer, 400, jsonread.CodeValue, "logprobs")
		}
	}
}

func TestScoresOfImpossibleTokensAreNumbers(t *testing.T) {
	f := start(t, &toy.Model{Logits: func(_ []int32, row []float32) {
		for i := range row {
			row[i] = float32(math.Inf(-1))
		}
		row[9] = 0
	}}, nil)
	_, _, answer := f.post("/v1/completions", `{"prompt":[5,6],"max_tokens":1,"logprobs":1,"echo":true}`)
	if got := *wholeText(t, answer, 1).Choices[0].Logprobs.TokenLogprobs[1]; got != -9999 {
		t.Errorf("an impossible token scores %v, want -9999", got)
	}
}
