package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// WebhookOptions says which service judges answers.
type WebhookOptions struct {
	Name    string        `yaml:"name"`    // of the verifier, as plans name it
	URL     string        `yaml:"url"`     // http(s)://, where candidates are posted
	Key     string        `yaml:"key"`     // bearer key that it wants; empty: none
	Timeout time.Duration `yaml:"timeout"` // for one answer; 0: 10s
	Steps   bool          `yaml:"steps"`   // it judges solution steps too, not whole answers alone
}

const (
	defaultTimeout = 10 * time.Second
	mostTimeout    = time.Hour
	mostName       = 64
)

// Validate reports the first fault; it begins with the option's name and a colon.
func (o *WebhookOptions) Validate() error {
	u, err := url.Parse(o.URL)
	switch {
	case o.Name == "" || len(o.Name) > mostName:
		return fmt.Errorf("name: it has 1 to %d bytes", mostName)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("url: it is not of the form http://HOST/PATH")
	case o.Timeout < 0 || o.Timeout > mostTimeout:
		return fmt.Errorf("timeout: %v is outside 0s..%v", o.Timeout, mostTimeout)
	}
	for _, c := range []byte(o.Key) {
		if c <= ' ' || c > '~' {
			return errors.New("key: it has other characters than a header can carry")
		}
	}
	return nil
}

// ServiceError says that a service has not judged, or not as it should.
type ServiceError struct {
	Name string // of the verifier
	Err  error
}

func (e *ServiceError) Error() string { return fmt.Sprintf("verify: %s: %v", e.Name, e.Err) }

// Unwrap returns what has happened.
func (e *ServiceError) Unwrap() error { return e.Err }

// Question is the question that answers answer, as a service is told.
type Question struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages,omitempty"` // of a conversation
	Prompt   string    `json:"prompt,omitempty"`   // else
}

// Message is one of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a string, null or parts
}

// Webhook is a service that judges answers to questions.
type Webhook struct {
	opt    WebhookOptions
	client *http.Client
}

// NewWebhook makes one of valid options.
func NewWebhook(o WebhookOptions) *Webhook {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Webhook{o, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Steps tells whether it judges answers that are not whole.
func (w *Webhook) Steps() bool { return w.opt.Steps }

// About returns the check of answers to a question. Answers that wait while others are judged are posted
// together.
func (w *Webhook) About(q Question) Check { return &posting{hook: w, question: q} }

// posting is the answers to one question.
type posting struct {
	hook     *Webhook
	question Question

	mu      sync.Mutex // guards what follows
	waiting []*posted
	busy    bool // one of those that wait posts
}

// posted is an answer on its way.
type posted struct {
	text    string
	verdict Verdict
	err     error
	done    chan struct{}
}

// gather is the time that the first of several answers waits for the others.
const gather = 5 * time.Millisecond

// mostPosted bounds the answers of one post.
const mostPosted = 64

// Check implements Check.
func (p *posting) Check(ctx context.Context, answer string) (Verdict, error) {
	one := &posted{text: answer, done: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, one)
	leads := !p.busy
	p.busy = true
	p.mu.Unlock()
	if leads {
		p.post(ctx)
	}
	select {
	case <-one.done:
		return one.verdict, one.err
	case <-ctx.Done():
		return Verdict{}, context.Cause(ctx)
	}
}

// post posts waiting answers until there are none. All answers to a question are given up together, so they
// share ctx.
func (p *posting) post(ctx context.Context) {
	wait := time.NewTimer(gather)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	for {
		p.mu.Lock()
		batch := p.waiting[:min(len(p.waiting), mostPosted)]
		p.waiting = p.waiting[len(batch):]
		p.busy = len(batch) > 0
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		verdicts, err := p.hook.judge(ctx, p.question, batch)
		for i, one := range batch {
			if one.err = err; err == nil {
				one.verdict = verdicts[i]
			}
			close(one.done)
		}
	}
}

// tries is the number of posts that are tried if there is no answer, or a 5xx.
const tries = 2

// judge has the service judge answers.
func (w *Webhook) judge(ctx context.Context, q Question, batch []*posted) ([]Verdict, error) {
	type candidate struct {
		Text string `json:"text"`
	}
	body := struct {
		Question
		Candidates []candidate `json:"candidates"`
	}{Question: q}
	for _, one := range batch {
		body.Candidates = append(body.Candidates, candidate{one.text})
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, &ServiceError{w.opt.Name, err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.opt.Timeout, &ServiceError{w.opt.Name, fmt.Errorf("no answer within %v", w.opt.Timeout)})
	defer cancel()
	for try := 1; ; try++ {
		verdicts, again, err := w.try(ctx, text, len(batch))
		switch {
		case err == nil:
			return verdicts, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !again || try == tries:
			return nil, &ServiceError{w.opt.Name, err}
		}
	}
}

// mostAnswer bounds what a service may answer, in bytes.
const mostAnswer = 1 << 20

// try posts once. again tells whether another try may help.
func (w *Webhook) try(ctx context.Context, body []byte, n int) (verdicts []Verdict, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.opt.URL, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	if w.opt.Key != "" {
		req.Header.Set("Authorization", "Bearer "+w.opt.Key)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, true, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, resp.StatusCode >= 500, fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err != nil {
		return nil, true, err
	}
	if len(text) > mostAnswer {
		return nil, false, fmt.Errorf("its answer is longer than %d bytes", mostAnswer)
	}
	verdicts, err = readVerdicts(text, n)
	return verdicts, false, err
}

// readVerdicts reads what a service says of n answers.
func readVerdicts(text []byte, n int) ([]Verdict, error) {
	var got struct {
		Scores   []*float64 `json:"scores"`
		Verdicts []string   `json:"verdicts"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if len(got.Scores) != n || len(got.Verdicts) > n {
		return nil, fmt.Errorf("it has %d scores and %d verdicts for %d candidates", len(got.Scores), len(got.Verdicts), n)
	}
	verdicts := make([]Verdict, n)
	for i, s := range got.Scores {
		if s == nil || !(*s >= 0 && *s <= 1) {
			return nil, fmt.Errorf("scores[%d] is no number in [0, 1]", i)
		}
		verdicts[i].Score = float32(*s)
		if i < len(got.Verdicts) {
			verdicts[i].Words = cut(got.Verdicts[i])
		}
	}
	return verdicts, nil
}
