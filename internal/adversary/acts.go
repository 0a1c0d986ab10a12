package adversary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// act is one kind of hostile request. It returns the outcome. A server must answer or
// end the connection.
type act struct {
	name string
	do   func(ctx context.Context, c *client) (outcome string, err error)
}

// client is one of many.
type client struct {
	*run
	rnd *rand.Rand
}

// The outcomes other than statuses.
const (
	left = "left" // the client did, as intended
	cut  = "cut"  // the server ended the connection
)

// acts are all kinds. Each client begins with a different one.
var acts = []act{
	{"huge body", hugeBody},
	{"slow sender", slowSender},
	{"slow reader", slowReader},
	{"leaver", leaver},
	{"many choices", manyChoices},
	{"malformed JSON", malformedJSON},
	{"no HTTP", noHTTP},
	{"small body", smallBody},
}

// demand takes one of the few places for requests that a model answers. Many of those
// would be load, which benchmarks measure.
func (c *client) demand() (done func(), ok bool) {
	select {
	case c.demanding <- struct{}{}:
		return func() { <-c.demanding }, true
	default:
		return nil, false
	}
}

// hugeBody sends as much of one thing as the server accepts.
func hugeBody(ctx context.Context, c *client) (string, error) {
	b := c.bodies[c.rnd.IntN(len(c.bodies))]
	return c.post(ctx, b.Path, b.Reader(), int64(b.Size))
}

// smallBody sends what fits anywhere, to all endpoints.
func smallBody(ctx context.Context, c *client) (string, error) {
	small := Bodies(8 << 10)
	b := small[c.rnd.IntN(len(small))]
	return c.post(ctx, b.Path, b.Reader(), int64(b.Size))
}

// slowSender announces a body and sends a part of it, then a byte now and then.
func slowSender(ctx context.Context, c *client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Patience)
	defer cancel()
	b := c.bodies[c.rnd.IntN(len(c.bodies))]
	body := &drip{ctx: ctx, r: b.Reader(), fast: c.rnd.IntN(b.Size), pause: c.opt.Patience / 20}
	return ended(ctx)(c.post(ctx, b.Path, body, int64(b.Size)))
}

// drip reads some bytes at once and then one after each pause.
type drip struct {
	ctx   context.Context
	r     io.Reader
	fast  int
	pause time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if d.fast > 0 {
		n, err := d.r.Read(p[:min(len(p), d.fast)])
		d.fast -= n
		return n, err
	}
	select {
	case <-time.After(d.pause):
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	return d.r.Read(p[:1])
}

// slowReader asks for a long answer and reads a little of it now and then.
func slowReader(ctx context.Context, c *client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Patience)
	defer cancel()
	path, body := "/tokenize", `{"prompt":"`+strings.Repeat("1 ", 100_000)+`"}`
	if done, ok := c.demand(); ok {
		defer done()
		path, body = "/v1/chat/completions", `{"messages":[{"role":"user","content":"Count."}],"stream":true,"ignore_eos":true,"max_tokens":200}`
	}
	resp, err := c.send(ctx, path, strings.NewReader(body), int64(len(body)))
	if err != nil {
		return ended(ctx)("", err)
	}
	defer resp.Body.Close()
	for {
		if _, err := io.CopyN(io.Discard, resp.Body, 256); err != nil {
			return ended(ctx)(status(resp), nil)
		}
		select {
		case <-time.After(c.opt.Patience / 50):
		case <-ctx.Done():
			return left, nil
		}
	}
}

// leaver asks and does not wait for the answer.
func leaver(ctx context.Context, c *client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.rnd.Int64N(int64(c.opt.Patience/20)+1)))
	defer cancel()
	done, ok := c.demand()
	if !ok {
		b := c.bodies[c.rnd.IntN(len(c.bodies))]
		return ended(ctx)(c.post(ctx, b.Path, b.Reader(), int64(b.Size)))
	}
	defer done()
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("What is 12 * 7? ", 1+c.rnd.IntN(20)) + `"}],"max_tokens":100,"n":4}`
	return ended(ctx)(c.post(ctx, "/v1/chat/completions", strings.NewReader(body), int64(len(body))))
}

// manyChoices asks for as many choices as allowed, and as much as allowed in each.
func manyChoices(ctx context.Context, c *client) (string, error) {
	done, ok := c.demand()
	if !ok {
		return smallBody(ctx, c)
	}
	defer done()
	ids, stops, bias := make([]int, 1000), make([]string, 16), map[string]int{}
	for i := range ids {
		ids[i], bias[fmt.Sprint(i)] = i, 1
	}
	for i := range stops {
		stops[i] = strings.Repeat(string(rune('a'+i)), 1024)
	}
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": "Hi"}}, "n": 16, "max_tokens": 4,
		"stop_token_ids": ids, "stop": stops, "logit_bias": bias, "logprobs": true, "top_logprobs": 20, "ignore_eos": true})
	if err != nil {
		return "", err
	}
	return c.post(ctx, "/v1/chat/completions", bytes.NewReader(body), int64(len(body)))
}

func malformedJSON(ctx context.Context, c *client) (string, error) {
	body := []byte(`{"model":"default","messages":[{"role":"user","content":"Hi"}],"n":2,"stop":["a"],"test_time_scaling":{"method":"best_of_n","n":4}}`)
	for range 1 + c.rnd.IntN(4) {
		body[c.rnd.IntN(len(body))] = byte(c.rnd.IntN(256))
	}
	paths := []string{"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template", "/v1/rewards", "/v1/models", "/nowhere"}
	return c.post(ctx, paths[c.rnd.IntN(len(paths))], bytes.NewReader(body[:1+c.rnd.IntN(len(body))]), -1)
}

// noHTTP sends something that is not a request, or half of one, and reads the answer.
func noHTTP(ctx context.Context, c *client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Patience)
	defer cancel()
	words := []string{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/9.9\r\n\r\n", "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"GET /" + strings.Repeat("a", 100_000) + " HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-A: b\r\n", 10_000) + "\r\n", "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.host)
	if err != nil {
		return ended(ctx)("", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, _ = io.WriteString(conn, words[c.rnd.IntN(len(words))])
	if _, err := io.CopyN(io.Discard, conn, 1<<20); ctx.Err() == nil && err != nil {
		return cut, nil
	}
	return left, nil
}

// post sends a body and reads the answer.
func (c *client) post(ctx context.Context, path string, body io.Reader, size int64) (string, error) {
	resp, err := c.send(ctx, path, body, size)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", err
	}
	return status(resp), nil
}

func (c *client) send(ctx context.Context, path string, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opt.URL+path, &throttled{ctx, body, c.line})
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/json")
	return c.http.Do(req)
}

// throttled reads at most as fast as the line.
type throttled struct {
	ctx  context.Context
	r    io.Reader
	line *rate.Limiter
}

// lineBlock is the number of bytes sent at once.
const lineBlock = 64 << 10

func (t *throttled) Read(p []byte) (int, error) {
	n, err := t.r.Read(p[:min(len(p), lineBlock)])
	if wait := t.line.ReserveN(time.Now(), n).Delay(); wait > 0 {
		select {
		case <-time.After(wait):
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	return n, err
}

func status(resp *http.Response) string { return resp.Status[:min(3, len(resp.Status))] }

// ended turns errors that the client has caused itself into an outcome.
func ended(ctx context.Context) func(string, error) (string, error) {
	return func(outcome string, err error) (string, error) {
		if err != nil && ctx.Err() != nil {
			return left, nil
		}
		return outcome, err
	}
}

// broken reports whether the server has ended the connection. It does so with clients
// that go on sending after a refusal.
func broken(err error) bool {
	var failed *url.Error
	var op *net.OpError
	return errors.As(err, &failed) && !failed.Timeout() || errors.As(err, &op) || errors.Is(err, io.ErrUnexpectedEOF)
}
