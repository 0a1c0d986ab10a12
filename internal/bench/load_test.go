package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestRequestsShareTheirSystemMessageAndNothingElse(t *testing.T) {
	o := LoadOptions{PromptWords: 10, first: 3}
	if got := o.messages(1); len(got) != 1 || got[0].Role != "user" || got[0].Content != loadPrompt(4, 10) {
		t.Errorf("messages(1) = %+v, want the question 4 alone", got)
	}
	o.SystemWords = 60
	a, b := o.messages(1), o.messages(2)
	if len(a) != 2 || len(b) != 2 || a[0].Content != b[0].Content || a[0].Role != "system" || a[1].Content == b[1].Content {
		t.Errorf("messages(1), messages(2) = %+v, %+v, want two questions behind one system message", a, b)
	}
}

func TestARequestThatIsNeverAnsweredFailsAfterATime(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"four\"}}]}\n\n")
		if asked.Add(1) == 2 {
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the client left
			return
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	o := LoadOptions{URL: server.URL, Model: "m", Concurrency: 1, Requests: 3, PromptWords: 4, MaxTokens: 8, Timeout: 300 * time.Millisecond}
	r, err := loadTest(t.Context(), o, io.Discard)
	if err != nil || r.Errors != 1 || r.PromptTokens != 14 {
		t.Errorf("report = %+v, %v, want one error and the tokens of two answers", r, err)
	}
}
