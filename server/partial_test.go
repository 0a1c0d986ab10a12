package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/models"
)

// partialChunk is a chunk that shows candidates while they are written.
type partialChunk struct {
	Choices []struct {
		Delta struct {
			Content *string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Search *struct {
		Select   string `json:"select"`
		Finished int    `json:"finished"`
		Partial  []struct {
			Index   int     `json:"index"`
			Parent  int     `json:"parent"`
			Text    string  `json:"text"`
			Tokens  int     `json:"tokens"`
			Logprob float64 `json:"logprob"`
		} `json:"partial"`
	} `json:"test_time_scaling"`
}

func TestAStreamShowsCandidatesBeforeAnyIsComplete(t *testing.T) {
	const text = "This is what every one of them would say."
	m := says(t, text)
	steps, shown := 0, make(chan struct{})
	show := sync.OnceFunc(func() { close(shown) })
	defer show()
	m.Before = func(*models.Batch) error {
		if steps++; steps == 8 { // some tokens of each, the last of none
			<-shown
		}
		return nil
	}
	f := start(t, m, nil)
	body := chatBody(`,"stream":true,"test_time_scaling":{"method":"self_consistency","n":4,"early_stop":false,"include":["partial"]}`)
	resp, err := http.Post(f.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	texts, early := map[int]string{}, false
	events := bufio.NewScanner(resp.Body)
	events.Buffer(nil, 1<<20)
	for events.Scan() {
		data, ok := strings.CutPrefix(events.Text(), "data: {")
		if !ok {
			continue
		}
		var c partialChunk
		if err := json.Unmarshal([]byte("{"+data), &c); err != nil || len(c.Choices) != 1 {
			t.Fatalf("%s: %v", events.Text(), err)
		}
		if c.Search == nil || len(c.Search.Partial) == 0 {
			continue
		}
		if *c.Choices[0].Delta.Content != "" || c.Search.Select != "vote" {
			t.Errorf("progress comes as %s", events.Text())
		}
		for _, p := range c.Search.Partial {
			texts[p.Index] += p.Text
			if !strings.HasPrefix(text, texts[p.Index]) || p.Parent != -1 || p.Tokens < 1 || p.Logprob > 0 {
				t.Errorf("shown: %+v", p)
			}
		}
		if len(texts) == 4 {
			early = early || c.Search.Finished == 0
			show()
		}
	}
	if !early {
		t.Errorf("%d candidates were shown before any was complete, want 4", len(texts))
	}
}

func TestPartialCandidatesAreSentOnlyToThoseWhoAsk(t *testing.T) {
	f := real(t, nil)
	ask := func(fields string) (answer, stream []byte) {
		_, _, answer = f.post("/v1/chat/completions", question(t, 0, fields))
		_, _, stream = f.post("/v1/chat/completions", question(t, 0, `,"stream":true,"stream_options":{"include_usage":true}`+fields))
		return answer, stream
	}
	answer, stream := ask(`,"test_time_scaling":"beam8x4"`)
	shownAnswer, shownStream := ask(`,"test_time_scaling":"beam8x4;include=partial"`)
	plain, shown := readSearched(t, answer), readSearched(t, shownAnswer)
	want := plain.Choices[0].Message.Content
	for _, got := range []string{shown.Choices[0].Message.Content, readStreamedSearch(t, stream, 1).texts[0], readStreamedSearch(t, shownStream, 1).texts[0]} {
		if got != want || got == "" {
			t.Errorf("the answer is %q, want %q", got, want)
		}
	}
	if strings.Contains(string(stream)+string(answer)+string(shownAnswer), `"partial"`) {
		t.Error("candidates are shown to somebody who cannot want it")
	}
}
