package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
)

// history returns a conversation of so many questions, answered but for the last.
func history(questions int) string {
	var list []string
	for i := range questions {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"Question %d is about apples and pears."}`, i))
		if i < questions-1 {
			list = append(list, `{"role":"assistant","content":"It is 12."}`)
		}
	}
	return `{"messages":[{"role":"system","content":"Be brief."},` + strings.Join(list, ",") + `],"max_tokens":8`
}

// droppedIn reads what each part of an answer, streamed or not, says of messages left out.
func droppedIn(t *testing.T, answer []byte) (list []int) {
	t.Helper()
	type part struct {
		Truncation struct {
			Dropped int `json:"dropped_messages"`
		}
	}
	for _, p := range parts[part](t, answer) {
		list = append(list, p.Truncation.Dropped)
	}
	return list
}

func TestAConversationThatNoLongerFitsDropsItsOldestExchanges(t *testing.T) {
	f := start(t, &toy.Model{Context: 256}, nil)
	for _, mode := range []string{"", `,"truncation":"disabled"`} {
		status, _, answer := f.post("/v1/chat/completions", history(30)+mode+`}`)
		wantError(t, "a long conversation"+mode, status, answer, 400, api.CodeContext, "messages")
	}
	const auto = `,"truncation":"auto"`
	_, _, answer := f.post("/v1/chat/completions", history(3)+auto+`}`)
	if got := droppedIn(t, answer); got[0] != 0 || strings.Contains(string(answer), "truncation") {
		t.Errorf("a short conversation: %s", answer)
	}
	prompt, dropped := f.applied(history(30) + auto + `}`)
	if dropped == 0 || dropped%2 != 0 || !strings.Contains(prompt, "Be brief.") || !strings.Contains(prompt, "Question 29") || strings.Contains(prompt, "Question 0 ") {
		t.Errorf("%d messages were dropped, the model reads %q", dropped, prompt)
	}
	for _, fields := range []string{"", `,"n":2`, `,"test_time_scaling":"sc3"`} {
		status, _, answer := f.post("/v1/chat/completions", history(30)+auto+fields+`}`)
		whole := droppedIn(t, answer)
		if status != http.StatusOK || len(whole) != 1 || whole[0] == 0 || whole[0]%2 != 0 {
			t.Fatalf("%s: %d, dropped %v: %s", fields, status, whole, answer)
		}
		_, _, stream := f.post("/v1/chat/completions", history(30)+auto+fields+`,"stream":true}`)
		for i, n := range droppedIn(t, stream) {
			if (i == 0) != (n == whole[0]) || i > 0 && n != 0 {
				t.Errorf("%s: chunk %d says that %d messages were dropped, the whole answer %d", fields, i, n, whole[0])
			}
		}
	}
	// A larger answer leaves room for less.
	_, more := f.applied(strings.Replace(history(30), `"max_tokens":8`, `"x":0`, 1) + auto + `}`)
	_, _, small := f.post("/v1/chat/completions", history(30)+auto+`}`)
	if less := droppedIn(t, small)[0]; less >= more {
		t.Errorf("for 8 tokens %d messages were dropped, for a quarter of the context %d", less, more)
	}
}

func TestAModelsTurnsAreBoundedForEveryClient(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.model.MaxTurns = 2
	prompt, dropped := f.applied(history(6) + `}`)
	if dropped != 8 || strings.Contains(prompt, "Question 3") || !strings.Contains(prompt, "Question 4") || !strings.Contains(prompt, "Be brief.") {
		t.Errorf("%d messages were dropped, the model reads %q", dropped, prompt)
	}
	_, _, answer := f.post("/v1/chat/completions", history(6)+`}`)
	if got := droppedIn(t, answer)[0]; got != 8 {
		t.Errorf("%d messages were dropped, want 8", got)
	}
	_, _, tokens := f.post("/tokenize", history(6)+`}`)
	var count struct{ Count int }
	if err := json.Unmarshal(tokens, &count); err != nil || count.Count != wholeUsage(t, answer) {
		t.Errorf("tokenize counts %d tokens, the chat %d", count.Count, wholeUsage(t, answer))
	}
	_, _, answer = f.post("/v1/chat/completions", history(2)+`}`)
	if got := droppedIn(t, answer)[0]; got != 0 {
		t.Errorf("%d messages of a short conversation were dropped", got)
	}
}

func wholeUsage(t *testing.T, answer []byte) int {
	t.Helper()
	var c struct{ Usage wireUsage }
	if err := json.Unmarshal(answer, &c); err != nil {
		t.Fatal(err)
	}
	return c.Usage.Prompt
}
