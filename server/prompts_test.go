package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// searchedText is a text completion, or a chunk of one, with what it tells of
// its searches.
type searchedText[S any] struct {
	Choices []struct {
		Index        int            `json:"index"`
		Text         string         `json:"text"`
		FinishReason *string        `json:"finish_reason"`
		Search       *wireCandidate `json:"test_time_scaling"`
	} `json:"choices"`
	Usage *struct {
		wireUsage
		Search *struct {
			Chosen    int `json:"chosen_tokens"`
			Discarded int `json:"discarded_tokens"`
		} `json:"test_time_scaling"`
	} `json:"usage"`
	Search S `json:"test_time_scaling"`
}

func readTexts[S any](t *testing.T, answer []byte) (c searchedText[S]) {
	t.Helper()
	if err := json.Unmarshal(answer, &c); err != nil || len(c.Choices) == 0 {
		t.Fatalf("answer %s: %v", answer, err)
	}
	return c
}

func TestSearchesOfSeveralPromptsAreThoseOfEach(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	f := real(t, nil)
	var prompts []string
	for i := range 3 {
		prompts = append(prompts, fmt.Sprintf("<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", problems(t, 3)[i].Question))
	}
	body := func(prompt any, more string) string {
		return `{"model":"lutra-tiny-s","seed":7,"max_tokens":200,"n":2,"test_time_scaling":"bon32;early_stop=false;include=candidates","prompt":` + string(must(json.Marshal(prompt))) + more + `}`
	}
	_, _, answer := f.post("/v1/completions", body(prompts, ""))
	all := readTexts[[]wireSearch](t, answer)
	if len(all.Choices) != 6 || len(all.Search) != 3 {
		t.Fatalf("%d choices and %d searches in %s", len(all.Choices), len(all.Search), answer)
	}
	var sum wireUsage
	chosen := 0
	for p, prompt := range prompts {
		_, _, answer := f.post("/v1/completions", body(prompt, ""))
		one := readTexts[*wireSearch](t, answer)
		for i, c := range one.Choices {
			got := all.Choices[2*p+i]
			if got.Text != c.Text || got.Index != 2*p+i || string(must(json.Marshal(got.Search))) != string(must(json.Marshal(c.Search))) || c.Text == "" {
				t.Errorf("prompt %d, choice %d: %+v among others, %+v alone", p, i, got, c)
			}
		}
		if a, b := string(must(json.Marshal(all.Search[p]))), string(must(json.Marshal(one.Search))); a != b {
			t.Errorf("prompt %d: the search is %s among others, %s alone", p, a, b)
		}
		sum.Prompt += one.Usage.Prompt
		chosen += one.Usage.Search.Chosen
	}
	u := all.Usage
	for _, s := range []struct{ got, want int }{
		{u.Prompt, sum.Prompt}, {u.Search.Chosen, chosen}, {u.Completion, u.Search.Chosen + u.Search.Discarded}, {u.Total, u.Prompt + u.Completion},
	} {
		if s.got != s.want {
			t.Errorf("the usage %+v, %+v has %d where %d is due", u.wireUsage, u.Search, s.got, s.want)
		}
	}

	// Streamed, each prompt's first choice ends with its search.
	_, _, stream := f.post("/v1/completions", body(prompts, `,"stream":true`))
	texts, searches := make([]string, 6), 0
	for _, e := range strings.Split(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		if e == "data: [DONE]" {
			continue
		}
		c := readTexts[*wireSearch](t, []byte(strings.TrimPrefix(e, "data: ")))
		texts[c.Choices[0].Index] += c.Choices[0].Text
		switch finished := c.Choices[0].FinishReason != nil; {
		case finished && (c.Search != nil) != (c.Choices[0].Index%2 == 0):
			t.Errorf("the end of choice %d tells of a search: %t", c.Choices[0].Index, c.Search != nil)
		case finished && c.Search != nil:
			searches++
		case c.Search != nil && c.Search.Prompt == nil:
			t.Errorf("progress of no prompt: %s", e)
		}
	}
	for i, c := range all.Choices {
		if texts[i] != c.Text {
			t.Errorf("choice %d streams %q, whole it is %q", i, texts[i], c.Text)
		}
	}
	if searches != 3 {
		t.Errorf("%d searches were reported", searches)
	}
}
