package apiclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"
)

func TestAnAddressIsCompleted(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8080":        "http://127.0.0.1:8080/v1",
		"http://127.0.0.1:8080/":       "http://127.0.0.1:8080/v1",
		"https://host/v1/":             "https://host/v1",
		"https://host/proxy/openai/v2": "https://host/proxy/openai/v2",
		"localhost:9311":               "http://localhost:9311/v1",
		"localhost":                    "http://localhost/v1",
		"nas:9311/v1":                  "http://nas:9311/v1",
		"192.0.2.7":                    "http://192.0.2.7/v1",
		"[::1]:8080":                   "http://[::1]:8080/v1",
		"lutra.example.org":            "http://lutra.example.org/v1",
	} {
		if c, err := New(in, ""); err != nil || c.Base != want {
			t.Errorf("%s: %+v, %v, want %s", in, c, err, want)
		}
	}
	for _, bad := range []string{"", "nonsense", "ftp://host", "http://", "http:// ", ":8080", "a b:80"} {
		if c, err := New(bad, ""); err == nil || !strings.Contains(err.Error(), "is not an address") {
			t.Errorf("%q is %+v, %v", bad, c, err)
		}
	}
}

// endless sends text again and again, and counts what was taken of it.
type endless struct {
	status     int
	kind, text string
	sent       int
	done       chan struct{}
}

func (e *endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	defer close(e.done)
	w.Header().Set("Content-Type", e.kind)
	w.WriteHeader(e.status)
	block := bytes.Repeat([]byte(e.text), 1<<16/len(e.text)+1)
	for e.sent < 1<<31 {
		n, err := w.Write(block)
		if e.sent += n; err != nil {
			return
		}
	}
}

func TestAServerThatSendsWithoutEndIsNotReadWithoutEnd(t *testing.T) {
	list := func(c *Client) error { _, err := c.List(t.Context()); return err }
	complete := func(c *Client) error {
		_, err := c.API.CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "m"})
		err = Explain(c.Base, err)
		return err
	}
	stream := func(c *Client) (err error) {
		for _, err = range c.Stream(t.Context(), openai.ChatCompletionRequest{Model: "m"}, Extra{}) {
		}
		return err
	}
	const unread = 16 << 20 // what lies in the buffers of connections, at most
	for name, c := range map[string]struct {
		server endless
		ask    func(*Client) error
		most   int
		much   bool
	}{
		"a refused listing": {endless{status: 500, kind: "text/plain", text: "x"}, list, maxRefusal, false},
		"a refused answer":  {endless{status: 429, kind: "application/json", text: `{"error":`}, complete, maxRefusal, false},
		"a refused stream":  {endless{status: 404, kind: "text/html", text: "<p>"}, stream, maxRefusal, false},
		"a listing":         {endless{status: 200, kind: "application/json", text: `{"data":[` + strings.Repeat(" ", 1<<16)}, list, maxListing, false},
		"an answer":         {endless{status: 200, kind: "application/json", text: `"x`}, complete, maxAnswer, false},
		"a long name":       {endless{status: 200, kind: "application/json", text: `"x`}, list, maxListing, false},
		"a line":            {endless{status: 200, kind: "text/event-stream", text: "data: x"}, stream, maxLine, true},
		"a line of text":    {endless{status: 200, kind: "text/plain", text: "x"}, stream, maxLine, true},
		"comments":          {endless{status: 200, kind: "text/event-stream", text: ": x\n"}, stream, maxLine, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.done = make(chan struct{})
			s := httptest.NewServer(&c.server)
			defer s.Close()
			client, err := New(s.URL, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.ask(client); err == nil || c.much && !errors.Is(err, ErrTooMuch) || len(err.Error()) > 3*mostSaid {
				t.Errorf("it ends with %.200v", err)
			}
			http.DefaultClient.CloseIdleConnections()
			<-c.server.done
			if c.server.sent > c.most+unread {
				t.Errorf("%d bytes were taken, want %d at most", c.server.sent, c.most)
			}
		})
	}
}

func TestTheStatusOfARefusalIsKnownHoweverLongItIs(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":{"message":"`+strings.Repeat("x", 2*maxRefusal)+`"}}`)
	}))
	defer s.Close()
	client, err := New(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.List(t.Context())
	if status, ok := Status(err); !ok || status != http.StatusServiceUnavailable || err.Error() != client.Base+": 503 Service Unavailable" {
		t.Errorf("error %.100v, status %d", err, status)
	}
}

func TestABodyIsBoundedInAllAndByLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		b          bounded
		want       string
		err        error
	}{
		{"just enough", "abcd", bounded{left: 4}, "abcd", nil},
		{"one more", "abcde", bounded{left: 4}, "", ErrTooMuch},
		{"cut", "abcde", bounded{left: 4, cut: true}, "abcd", nil},
		{"short lines", strings.Repeat(strings.Repeat("x", maxLine)+"\n", 3), bounded{left: maxStream, lines: true}, "", nil},
		{"a long line", "\n" + strings.Repeat("x", maxLine+1<<17), bounded{left: maxStream, lines: true}, "", ErrTooMuch},
	} {
		c.b.ReadCloser = io.NopCloser(strings.NewReader(c.text))
		got, err := io.ReadAll(&c.b)
		if !errors.Is(err, c.err) || c.want != "" && string(got) != c.want {
			t.Errorf("%s: %.20q, %v, want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func TestTheDefaultModelIsTheServersFirst(t *testing.T) {
	for want, list := range map[string][]string{"a": {"a", "b"}, DefaultModel: {"a", DefaultModel}} {
		if got := (Listing{Names: list}).Named(DefaultModel); got != want {
			t.Errorf("of %v it is %s, want %s", list, got, want)
		}
	}
	if got := (Listing{}).Named(DefaultModel); got != DefaultModel {
		t.Errorf("of none it is %s", got)
	}
}

func TestAnErrorInWordsKeepsItsCause(t *testing.T) {
	err := Explain("http://h", fmt.Errorf("read: %w", context.DeadlineExceeded))
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "http://h: read: context deadline exceeded" {
		t.Errorf("%v", err)
	}
}
