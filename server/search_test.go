package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
)

// question returns a chat about the i-th problem of the test set, with these
// further fields.
func question(t *testing.T, i int, fields string) string {
	p := problems(t, i+1)[i]
	return `{"model":"lutra-tiny-s","seed":7,"max_tokens":300,"messages":[{"role":"user","content":` + string(must(json.Marshal(p.Question))) + `}]` + fields + `}`
}

func TestAStreamedSearchEqualsTheUnstreamedOne(t *testing.T) {
	sweep.Full(t)
	f := real(t, nil)
	for i, plan := range []string{
		`"bon4"`, `"sc5"`, `"beam8x4"`, `"dvts8x4"`, `"beam8x4;stream_mode=final"`, `"bon4;stream_mode=candidates"`,
		`{"method":"auto","n":8,"include":["candidates","steps","tree"]}`, `{"method":"deepconf","n":8,"deepconf":{"window":8},"include":["candidates"]}`, `"pf8"`, `"abon8"`,
	} {
		n := 1 + i%2
		fields := fmt.Sprintf(`,"n":%d,"test_time_scaling":%s`, n, plan)
		_, _, answer := f.post("/v1/chat/completions", question(t, 0, fields))
		whole := readSearched(t, answer)
		_, _, stream := f.post("/v1/chat/completions", question(t, 0, fields+`,"stream":true,"stream_options":{"include_usage":true}`))
		streamed := readStreamedSearch(t, stream, n)
		for i, ch := range whole.Choices {
			if streamed.texts[i] != ch.Message.Content || ch.Message.Content == "" {
				t.Errorf("%s: choice %d streams %q, whole it is %q", plan, i, streamed.texts[i], ch.Message.Content)
			}
			if a, b := string(must(json.Marshal(ch.Search))), string(must(json.Marshal(streamed.choices[i]))); a != b {
				t.Errorf("%s: choice %d is reported as %s, whole as %s", plan, i, b, a)
			}
		}
		if a, b := string(must(json.Marshal(whole.Search))), string(must(json.Marshal(streamed.outcome))); a != b {
			t.Errorf("%s: the search is reported as %s, whole as %s", plan, b, a)
		}
		if u := whole.Usage; u.Search == nil || u.Search.Chosen == 0 || u.Search.Chosen+u.Search.Discarded != u.Completion || u.Search.Verifier == 0 && !strings.Contains(plan, "sc5") && !strings.Contains(plan, "deepconf") {
			t.Errorf("%s: usage %+v, %+v", plan, u.wireUsage, u.Search)
		}
		if *streamed.usage != whole.Usage.Completion {
			t.Errorf("%s: %d tokens when streamed, %d when not", plan, *streamed.usage, whole.Usage.Completion)
		}
		if streamed.progress == 0 {
			t.Errorf("%s: nothing was reported while the search ran", plan)
		}
		if tree := whole.Search.Tree; len(streamed.added) > len(tree) || (len(streamed.added) > 0) != (tree != nil) {
			t.Errorf("%s: the tree grew by %d nodes, whole it has %d", plan, len(streamed.added), len(tree))
		} else {
			for i, n := range streamed.added {
				if n.Text != tree[i].Text || n.Parent != tree[i].Parent {
					t.Errorf("%s: node %d grew as %+v, whole it is %+v", plan, i, n, tree[i])
				}
			}
		}
		if wanted := strings.Contains(plan, "candidates") && !strings.Contains(plan, "include"); wanted != (streamed.candidates > 0) {
			t.Errorf("%s: %d candidates were reported while it ran", plan, streamed.candidates)
		}
	}
}

// streamedSearch holds the text and the reports of a search's stream.
type streamedSearch struct {
	texts      []string
	choices    []*wireCandidate
	outcome    *wireSearch
	progress   int // chunks that tell where the search stands
	candidates int // reported in them
	added      []wireNode
	usage      *int
}

// readStreamedSearch checks that every chunk is one that old clients can read.
func readStreamedSearch(t *testing.T, stream []byte, n int) streamedSearch {
	t.Helper()
	out := streamedSearch{texts: make([]string, n), choices: make([]*wireCandidate, n)}
	var finished []int
	events := strings.Split(strings.TrimSuffix(string(stream), "\n\n"), "\n\n")
	if events[len(events)-1] != "data: [DONE]" {
		t.Fatalf("the stream ends with %q", events[len(events)-1])
	}
	for _, e := range events[:len(events)-1] {
		var c searched
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &c); err != nil {
			t.Fatalf("event %s: %v", e, err)
		}
		if c.Usage != nil {
			out.usage = &c.Usage.Completion
			if c.Usage.Search == nil || len(c.Choices) != 0 {
				t.Errorf("the chunk with the usage is %s", e)
			}
			continue
		}
		if len(c.Choices) != 1 || slices.Contains(finished, c.Choices[0].Index) && c.Choices[0].FinishReason == nil {
			t.Fatalf("chunk %s", e)
		}
		ch := c.Choices[0]
		if ch.Delta.Content != nil {
			out.texts[ch.Index] += *ch.Delta.Content
		}
		switch {
		case ch.FinishReason != nil:
			finished = append(finished, ch.Index)
			out.choices[ch.Index] = ch.Search
			if c.Search != nil {
				out.outcome = c.Search
			}
		case c.Search != nil:
			out.progress++
			out.candidates += len(c.Search.Candidates)
			out.added = append(out.added, c.Search.Added...)
			if c.Search.StopReason != "" || ch.Delta.Content == nil || *ch.Delta.Content != "" {
				t.Errorf("progress comes as %s", e)
			}
		}
	}
	if len(finished) != n || out.outcome == nil || out.usage == nil {
		t.Fatalf("%d of %d choices have ended in %s", len(finished), n, stream)
	}
	return out
}

func TestASearchReportsWhatWasAskedFor(t *testing.T) {
	f := real(t, nil)
	_, _, answer := f.post("/v1/chat/completions", question(t, 1, `,"test_time_scaling":{"method":"beam_search","n":8,"width":4}`))
	plain := readSearched(t, answer)
	if s := plain.Search; s.Method != "beam_search" || s.N != 8 || s.Width != 4 || s.Steps < 2 || s.StopReason != "complete" || s.Candidates != nil || s.Tree != nil {
		t.Errorf("the search is %+v", s)
	}
	if c := plain.Choices[0].Search; c == nil || c.Score == nil || *c.Score <= 0 || *c.Score > 1 || c.Answer == nil || c.Votes < 1 || len(c.StepScores) < 2 || c.Steps != nil {
		t.Errorf("the choice is %+v", c)
	}
	_, _, answer = f.post("/v1/chat/completions", question(t, 1, `,"test_time_scaling":{"method":"beam_search","n":8,"width":4,"include":["candidates","steps","tree"]}`))
	full := readSearched(t, answer)
	if full.Choices[0].Message.Content != plain.Choices[0].Message.Content {
		t.Error("asking for more changes the answer")
	}
	var text strings.Builder
	for _, s := range full.Choices[0].Search.Steps {
		text.WriteString(s.Text)
	}
	if text.String() != full.Choices[0].Message.Content {
		t.Errorf("the steps say %q, the answer %q", text.String(), full.Choices[0].Message.Content)
	}
	of := 0
	for _, s := range full.Choices[0].Search.Steps {
		of += s.Tokens
	}
	if c := full.Choices[0].Search; c.Tokens != of || full.Search.Candidates[0].Tokens != of {
		t.Errorf("the choice has %d tokens, its steps %d", c.Tokens, of)
	}
	tokens := 0
	for i, n := range full.Search.Tree {
		if n.Parent >= i {
			t.Fatalf("node %d stands before its parent %d", i, n.Parent)
		}
		tokens += n.Tokens
	}
	if tokens != full.Usage.Completion || tokens == 0 {
		t.Errorf("the tree has %d tokens, the usage %d", tokens, full.Usage.Completion)
	}
	if best := full.Search.Candidates[0]; best.Text != full.Choices[0].Message.Content || best.FinishReason == nil || best.Candidate != full.Choices[0].Search.Candidate {
		t.Errorf("the first candidate is %+v, the choice %+v", best, full.Choices[0])
	}
}

func TestCompletionsSearchTooAndBestOfReportsNothing(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	status, h, answer := f.post("/v1/completions", `{"prompt":"Once","seed":5,"max_tokens":6,"n":2,"test_time_scaling":"bon8"}`)
	var c struct {
		Choices []struct {
			Text   string         `json:"text"`
			Search *wireCandidate `json:"test_time_scaling"`
		} `json:"choices"`
		Search *wireSearch `json:"test_time_scaling"`
	}
	if err := json.Unmarshal(answer, &c); err != nil || status != 200 || len(c.Choices) != 2 || c.Search == nil || h.Get("X-Lutra-Scaling-Applied") == "" ||
		*c.Choices[0].Search.Score < *c.Choices[1].Search.Score {
		t.Fatalf("a search answers %d %s", status, answer)
	}
	best := []string{c.Choices[0].Text, c.Choices[1].Text}

	_, h, answer = f.post("/v1/completions", `{"prompt":["Once","Twice"],"seed":5,"max_tokens":6,"n":2,"best_of":8,"temperature":0.8}`)
	plain := strict[wireText](t, answer)
	if len(plain.Choices) != 4 || plain.Choices[0].Text != best[0] || plain.Choices[1].Text != best[1] || h.Get("X-Lutra-Scaling-Applied") != "" {
		t.Errorf("best_of answers %s, want first what the search did: %q", answer, best)
	}
	if plain.Usage.Completion <= 4*6 {
		t.Errorf("usage %+v, want the tokens of all 16 candidates", plain.Usage)
	}
	_, _, greedy := f.post("/v1/completions", `{"prompt":"Once","max_tokens":6,"temperature":0,"best_of":4}`)
	_, _, single := f.post("/v1/completions", `{"prompt":"Once","max_tokens":6,"temperature":0}`)
	if a, b := strict[wireText](t, greedy), strict[wireText](t, single); a.Choices[0].Text != b.Choices[0].Text || a.Usage.Completion != b.Usage.Completion {
		t.Errorf("the best of greedy answers is %s, want %s", greedy, single)
	}
}

func TestAClientThatLeavesASearchFreesBothEngines(t *testing.T) {
	sweep.Full(t)
	for plan, path := range map[string]string{
		"beam16x4": "/v1/chat/completions", "sc16": "/v1/chat/completions", "dvts16x4": "/v1/messages", "pf16": "/v1/chat/completions", "deepconf16": "/v1/responses",
	} {
		f := real(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		body := question(t, 2, `,"stream":true,"test_time_scaling":"`+plan+`"`)
		if path == "/v1/responses" {
			body = strings.Replace(strings.Replace(body, "messages", "input", 1), "max_tokens", "max_output_tokens", 1)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resp.Body.Read(make([]byte, 512)); err != nil || resp.StatusCode != http.StatusOK {
			t.Error(plan, resp.Status, err)
		}
		cancel()
		resp.Body.Close()
		f.settle()
	}
}

func TestSearchesAtOnceGetTheAnswersThatEachGetsAlone(t *testing.T) {
	sweep.Full(t)
	f := real(t, nil)
	ask := func(i int) string {
		_, _, answer := f.post("/v1/chat/completions", question(t, i, `,"test_time_scaling":"beam8x4"`))
		return readSearched(t, answer).Choices[0].Message.Content
	}
	together := make([]string, 6)
	var wg sync.WaitGroup
	for i := range together {
		wg.Go(func() { together[i] = ask(i) })
	}
	wg.Wait()
	for i, text := range together {
		if alone := ask(i); alone != text {
			t.Errorf("problem %d: %q in company, %q alone", i, text, alone)
		}
	}
}

func TestASearchBeyondTheAllowanceIsSentAway(t *testing.T) {
	f := real(t, func(o *Options) { o.TokensPerMinute = 100 })
	if status, _, answer := f.post("/v1/chat/completions", question(t, 0, `,"test_time_scaling":"bon8"`)); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	status, h, answer := f.post("/v1/chat/completions", question(t, 0, `,"test_time_scaling":"bon8"`))
	wantError(t, "in debt", status, answer, http.StatusTooManyRequests, "rate_limit_exceeded", "")
	if h.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestMetricsOfSearchesAddUp(t *testing.T) {
	f := real(t, nil)
	chosen, discarded, verifier, candidates := 0, 0, 0, 0
	for i, plan := range []string{"bon4", "beam8x4"} {
		_, _, answer := f.post("/v1/chat/completions", question(t, i, `,"test_time_scaling":"`+plan+`;include=candidates"`))
		c := readSearched(t, answer)
		chosen += c.Usage.Search.Chosen
		discarded += c.Usage.Search.Discarded
		verifier += c.Usage.Search.Verifier
		candidates += len(c.Search.Candidates)
	}
	_, _, answer := f.do("GET", "/metrics", nil)
	for _, c := range []struct {
		name, labels string
		want         int
	}{
		{"lutra_search_requests_total", `method="best_of_n"`, 1},
		{"lutra_search_requests_total", `method="beam_search"`, 1},
		{"lutra_search_candidates_total", `outcome="chosen"`, 2},
		{"lutra_search_candidates_total", `outcome="discarded"`, candidates - 2},
		{"lutra_search_tokens_total", `fate="chosen",role="policy"`, chosen},
		{"lutra_search_tokens_total", `fate="discarded",role="policy"`, discarded},
		{"lutra_search_tokens_total", `fate="computed",role="verifier"`, verifier},
		{"lutra_time_to_first_token_seconds_count", "", 2},
	} {
		if got := metric(t, string(answer), c.name, c.labels); got != float64(c.want) {
			t.Errorf("%s{%s} = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if metric(t, string(answer), "lutra_search_candidates_total", `outcome="pruned"`) == 0 {
		t.Error("a beam search pruned nothing")
	}
}

func TestWhatASearchIsChargedDependsOnTheRequestAlone(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	f := real(t, nil)
	for _, plan := range []string{`"sc8"`, `"bon8"`, `"beam8x4"`, `"auto;n=8"`, `"sc8;budget.tokens=200"`, `"beam8x4;budget.tokens=150"`} {
		body := question(t, 2, `,"test_time_scaling":`+plan)
		account := func(answer []byte) (u [4]int) {
			c := readSearched(t, answer)
			return [4]int{c.Usage.Completion, c.Usage.Search.Chosen, c.Usage.Search.Discarded, c.Usage.Search.Verifier}
		}
		_, _, answer := f.post("/v1/chat/completions", body)
		alone := account(answer)
		var all sync.WaitGroup
		crowd := make([][]byte, 12)
		for i := range crowd {
			all.Go(func() { _, _, crowd[i] = f.post("/v1/chat/completions", body) })
		}
		all.Wait()
		for _, answer := range crowd {
			if got := account(answer); got != alone {
				t.Errorf("%s costs %v in a crowd, %v alone", plan, got, alone)
			}
		}
	}
}
