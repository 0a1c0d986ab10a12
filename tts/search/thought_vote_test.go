package search_test

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// saysAfter returns a model that answers one prompt with one text.
func saysAfter(t *testing.T, prompt, text string) *toy.Model {
	t.Helper()
	tok := ttstest.Words(t)
	encode := func(s string) []int32 { return tok.Encode(nil, s, tokenizer.Options{}) }
	begin, says := len(encode(prompt)), encode(text)
	end, _ := tok.EOS()
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		next := end
		if at := len(tokens) - begin; at >= 0 && at < len(says) {
			next = says[at]
		}
		row[next] = 50
	}}
}

func TestWhatACandidateThinksIsNoVote(t *testing.T) {
	for _, c := range []struct{ prompt, text, answer string }{
		{"Q: ", "Answer: 1.\n", "1"},
		{"Q: <think>", "Answer: 1.\n", ""},
		{"Q: <think>", "Answer: 1.\n</think>Answer: 2.\n", "2"},
		{"Q: ", "<think>Answer: 1.\n</think>Answer: 2.\n", "2"},
		{"Q: ", "<think>Answer: 1.\n", ""},
	} {
		m := ttstest.Run(t, saysAfter(t, c.prompt, c.text))
		req := &tts.Request{Prompt: tts.Prompt{Text: c.prompt, NoBOS: true}, Sampling: sampling.Params{Temperature: 0.8, Seed: 1, MaxTokens: 60}}
		got := carryOut(t, Search{Model: m, Plan: plan(t, "sc4;early_stop=false")}, req)
		if got.Candidates[0].Answer != c.answer {
			t.Errorf("%q after %q answers %q, want %q", c.text, c.prompt, got.Candidates[0].Answer, c.answer)
		}
	}
}
