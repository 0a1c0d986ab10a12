package bench

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
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

// network is how servers answer.
type network func(r *http.Request) (*http.Response, error)

func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

// silence has nothing to read until the client leaves.
type silence struct{ ctx context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestARequestThatIsNeverAnsweredFailsAfterATime(t *testing.T) {
	before := http.DefaultClient.Transport
	defer func() { http.DefaultClient.Transport = before }()
	synctest.Test(t, func(t *testing.T) { // on whose clock the others take no time
		asked := 0
		http.DefaultClient.Transport = network(func(r *http.Request) (*http.Response, error) {
			rest := io.Reader(strings.NewReader("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"))
			if asked++; asked == 2 {
				rest = silence{r.Context()}
			}
			body := io.MultiReader(strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"four\"}}]}\n\n"), rest)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Request: r}, nil
		})
		o := LoadOptions{URL: "http://nowhere.example", Model: "m", Concurrency: 1, Requests: 3, PromptWords: 4, MaxTokens: 8, Timeout: 10 * time.Minute}
		r, err := loadTest(t.Context(), o, io.Discard)
		if err != nil || r.Errors != 1 || r.PromptTokens != 14 || r.Seconds != o.Timeout.Seconds() {
			t.Errorf("report = %+v, %v, want one error after %v and the tokens of two answers", r, err, o.Timeout)
		}
	})
}

func TestAnInterruptedLoadTestHasTheAnswersSoFar(t *testing.T) {
	before := http.DefaultClient.Transport
	defer func() { http.DefaultClient.Transport = before }()
	for answers := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		http.DefaultClient.Transport = network(func(r *http.Request) (*http.Response, error) {
			if asked++; asked > answers {
				cancel()
				return nil, r.Context().Err()
			}
			body := strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"four\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Request: r}, nil
		})
		o := DefaultLoadOptions()
		o.URL, o.Model, o.Concurrency, o.Requests = "http://nowhere.example", "m", 1, 9
		r, err := Server(ctx, o, io.Discard)
		if got, _ := r.(LoadReport); !errors.Is(err, context.Canceled) || got.Requests != answers || got.CompletionTokens != answers || got.Errors != 0 || (r == nil) != (answers == 0) {
			t.Errorf("after %d answers: %+v, %v", answers, r, err)
		}
	}
}
