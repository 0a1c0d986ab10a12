package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// ErrUnknown says that no server of a name is configured.
var ErrUnknown = errors.New("mcp: there is no server of this name")

// Error says that a server has not answered, or not as it should.
type Error struct {
	Name   string // of the server
	Status int    // that a client is to see: the server's own, where the fault is the client's
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("mcp: %s: %s", e.Name, e.Text) }

// Bounds of an answer.
const (
	mostAnswer = 16 << 20 // bytes
	mostText   = 200      // bytes of what a server says of a fault
	pieceLen   = 32 << 10 // bytes that are passed on at once
)

// Relay passes messages on. All its methods may be called at once.
type Relay struct {
	servers map[string]*upstream
	client  *http.Client
}

// upstream is a server with what is under way to it.
type upstream struct {
	Options
	places places
}

// New makes a relay to servers that Validate has found good. Messages under way hold at most most
// bytes, of which each server has an equal part.
func New(servers map[string]Options, most int64) *Relay {
	known := map[string]*upstream{}
	for name, o := range servers {
		o.Timeout = cmp.Or(o.Timeout, standardTimeout)
		known[name] = &upstream{Options: o, places: places{most: load{mostMessages, most / int64(len(servers))}, byKey: map[string]load{}}}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	return &Relay{known, &http.Client{
		Transport: transport,
		// A server that is configured names no other one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Names returns the servers' in order.
func (r *Relay) Names() []string { return slices.Sorted(maps.Keys(r.servers)) }

// Message is one that a client sends.
type Message struct {
	*http.Request
	Body  []byte
	Key   string // of the client: each has its share of the places
	Bytes int64  // of memory that it holds
}

// Pass sends a message to the server of a name, and what it answers to w: a client has the timeout to
// take a piece, and the server its own to send one. It returns ErrUnknown, ErrBusy, an Error, or that of
// the request's context; after an answer has begun and broken off it panics with http.ErrAbortHandler.
func (r *Relay) Pass(name string, req *Message, w http.ResponseWriter, timeout time.Duration) error {
	o, ok := r.servers[name]
	if !ok {
		return ErrUnknown
	}
	leave, err := o.places.enter(req.Key, req.Bytes)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	var silent atomic.Bool
	watchdog := time.AfterFunc(o.Timeout, func() {
		silent.Store(true)
		cancel()
	})
	defer watchdog.Stop()
	out, err := http.NewRequestWithContext(ctx, req.Method, o.URL, bytes.NewReader(req.Body))
	if err != nil {
		return &Error{name, http.StatusBadGateway, "it cannot be asked"}
	}
	passHeaders(out.Header, req.Header, "Accept", "Content-Type", "Last-Event-Id")
	for key, value := range o.Headers {
		out.Header.Set(key, value)
	}
	if host := out.Header.Get("Host"); host != "" {
		out.Host = host
	}
	resp, err := r.client.Do(out)
	if err != nil {
		switch {
		case req.Context().Err() != nil:
			return context.Cause(req.Context())
		case silent.Load():
			return &Error{name, http.StatusGatewayTimeout, fmt.Sprintf("it has sent nothing for %v", o.Timeout)}
		}
		return &Error{name, http.StatusBadGateway, "it cannot be reached"} // its address is the operator's
	}
	defer resp.Body.Close()
	resp.Body = &awaited{resp.Body, watchdog, o.Timeout}
	if err := refusal(name, resp); err != nil {
		return err
	}
	if contentless(resp) { // whatever is said of it
		passHeaders(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		return nil
	}
	passHeaders(w.Header(), resp.Header, "Content-Type", "Retry-After")
	w.WriteHeader(resp.StatusCode)
	if err := pass(w, resp.Body, timeout); err != nil {
		panic(http.ErrAbortHandler) // nobody takes the answer for whole
	}
	return nil
}

// passHeaders copies those of the protocol, Mcp-*, and others by name.
func passHeaders(dst, src http.Header, others ...string) {
	for name, values := range src {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains(others, name) {
			dst[name] = values
		}
	}
}

// contentless tells whether nobody reads what an answer has in it.
func contentless(resp *http.Response) bool {
	ended := resp.Request.Method == http.MethodDelete && resp.StatusCode == http.StatusOK
	return ended || resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent
}

// refusal returns what is wrong with an answer; nil: it can be passed on. Pages of this server
// are of one origin with it, so that it passes nothing that a browser would show as one. A fault of the
// server's credentials is not one of the client's.
func refusal(name string, resp *http.Response) error {
	status := resp.StatusCode
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	fit := media == "application/json" || media == "text/event-stream"
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusProxyAuthRequired:
		return &Error{name, http.StatusBadGateway, fmt.Sprintf("it refuses what headers of the configuration say of this server (status %d)", status)}
	case contentless(resp) || status == http.StatusOK && fit:
		return nil
	case status >= 400 && status < 500 && fit:
		return nil
	case status >= 400 && status < 500:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, mostText))
		return &Error{name, status, fmt.Sprintf("status %d: %s", status, strings.ToValidUTF8(strings.TrimSpace(string(text)), "?"))}
	case status == http.StatusOK:
		return &Error{name, http.StatusBadGateway, fmt.Sprintf("it answers with %.64q, not with JSON or events", media)}
	}
	return &Error{name, http.StatusBadGateway, fmt.Sprintf("it answers with status %d", status)}
}

// awaited is the body of an answer, each piece of which has the time of a watchdog to come.
type awaited struct {
	io.ReadCloser
	watchdog *time.Timer
	timeout  time.Duration
}

func (a *awaited) Read(p []byte) (int, error) {
	a.watchdog.Reset(a.timeout)
	defer a.watchdog.Stop()
	return a.ReadCloser.Read(p)
}

// pass copies an answer, each piece as it comes.
func pass(w http.ResponseWriter, body io.Reader, timeout time.Duration) error {
	rc := http.NewResponseController(w)
	piece := make([]byte, pieceLen)
	for left := mostAnswer; ; {
		n, err := body.Read(piece)
		if left -= n; left < 0 {
			return fmt.Errorf("mcp: an answer has more than %d bytes", mostAnswer)
		}
		if n > 0 {
			_ = rc.SetWriteDeadline(time.Now().Add(timeout)) // writers of tests have none
			if _, err := w.Write(piece[:n]); err != nil {
				return err
			}
			_ = rc.Flush()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
