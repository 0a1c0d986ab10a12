package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"
)

func TestASessionIsThatOfAnAgent(t *testing.T) {
	o := DefaultAgentOptions()
	o.Words = 2000
	list, again := o.session(), o.session()
	if !reflect.DeepEqual(list, again) {
		t.Error("two sessions of a seed differ")
	}
	titles, longest := 0, 0
	for i, r := range list {
		last := r.Messages[len(r.Messages)-1]
		if len(r.Tools) == 0 {
			titles++
			continue
		}
		longest = len(r.Messages)
		if !strings.HasPrefix(last.Content, "It is ") || i > 1 && strings.Contains(fmt.Sprint(r.Messages[:longest-1]), "It is ") {
			t.Errorf("request %d has reminders elsewhere than at its end", i)
		}
		if i > 3 && (r.known < 0.7 || r.known > 0.99) {
			t.Errorf("request %d is known for %.2f", i, r.known)
		}
	}
	if titles != 3 || longest != 2+2*(o.Turns-1)+1 {
		t.Errorf("%d titles, %d messages at the end", titles, longest)
	}
	o.From = 5
	if rest := o.session(); len(rest) == 0 || !reflect.DeepEqual(rest, list[len(list)-len(rest):]) || rest[0].turn != 5 {
		t.Errorf("from turn 5 on there are %d requests", len(rest))
	}
	o.From = 0
	if o.Seed++; reflect.DeepEqual(list, o.session()) {
		t.Error("another seed has the same session")
	}
}

// A server that says it computed all, and one that had all that an earlier prompt began with.
func TestWhatAnAgentsServerComputesAgainIsCounted(t *testing.T) {
	before := http.DefaultClient.Transport
	defer func() { http.DefaultClient.Transport = before }()
	for _, remembers := range []bool{false, true} {
		var texts []string
		http.DefaultClient.Transport = network(func(r *http.Request) (*http.Response, error) {
			var req openai.ChatCompletionRequest
			if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
				return nil, err
			}
			tools, _ := json.Marshal(req.Tools)
			messages, _ := json.Marshal(req.Messages)
			text, cached := string(tools)+string(messages), 0
			for _, b := range texts {
				n := 0
				for n < min(len(b), len(text)) && b[n] == text[n] {
					n++
				}
				cached = max(cached, n)
			}
			if texts = append(texts, text); !remembers {
				cached = 0
			}
			body := fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\ndata: [DONE]\n\n", len(text), cached)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
		o := AgentOptions{URL: "http://nowhere.example", Model: "m", Turns: 20, Words: 2000, MaxTokens: 8, Timeout: DefaultAgentOptions().Timeout}
		got, err := Agent(t.Context(), o, io.Discard)
		r, _ := got.(AgentReport)
		if err != nil || len(r.Servers) != 1 || r.Requests != 23 || r.Servers[0].Completion != 23 {
			t.Fatalf("%+v, %v", got, err)
		}
		if s := r.Servers[0]; remembers && s.Share > 0.01 || !remembers && s.Share < 0.99 {
			t.Errorf("remembers %t: %+v", remembers, s)
		}
		var text strings.Builder
		if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "recomputed") {
			t.Errorf("%s, %v", text.String(), err)
		}
	}
	for _, o := range []AgentOptions{{}, {Turns: 1 << 20, Words: 1, MaxTokens: 1, Timeout: 1}, {Turns: 2, From: 2, Words: 1, MaxTokens: 1, Timeout: 1}, {Turns: 1, Words: 1 << 30, MaxTokens: 1, Timeout: 1}} {
		if _, err := Agent(t.Context(), o, io.Discard); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
