package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// end is a way for a request to end.
type end uint8

const (
	answered  end = iota
	refused       // with an error that has a message
	cancelled     // by its own client
	faulty        // anything else
	ends
)

func (e end) String() string { return [...]string{"answered", "refused", "cancelled", "faults"}[e] }

// clients are the connections of all kinds.
type clients struct {
	base       string
	fast, slow *http.Client
	timeout    time.Duration
}

func newClients(base string, n int, timeout time.Duration) *clients {
	narrow := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(2 << 10)
		}
		return c, err
	}
	return &clients{
		base: base, timeout: timeout,
		fast: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}},
		slow: &http.Client{Transport: &http.Transport{DialContext: narrow, DisableKeepAlives: true}},
	}
}

// close ends the connections that wait.
func (c *clients) close() {
	c.fast.CloseIdleConnections()
	c.slow.CloseIdleConnections()
}

// do carries a request out and says how it ended, and of a fault what was wrong.
func (c *clients) do(ctx context.Context, k *kind, r *rand.Rand) (end, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	sent := k.body(r)
	body, isRaw := sent.(raw)
	if !isRaw {
		var err error
		if body, err = json.Marshal(sent); err != nil {
			return faulty, err
		}
	}
	goes, leave := context.WithCancel(ctx)
	defer leave()
	if k.way == left && r.IntN(3) == 0 { // before there is an answer
		timer := time.AfterFunc(time.Duration(r.IntN(4000))*time.Microsecond, leave)
		defer timer.Stop()
	}
	req, err := http.NewRequestWithContext(goes, http.MethodPost, c.base+k.path, bytes.NewReader(body))
	if err != nil {
		return faulty, err
	}
	req.Header.Set("Authorization", "Bearer "+k.key)
	req.Header.Set("Content-Type", "application/json")
	http := c.fast
	if k.way == slow {
		http = c.slow
	}
	resp, err := http.Do(req)
	if err == nil {
		defer resp.Body.Close()
		body, err = take(resp.Body, k, r, leave)
	}
	switch {
	case goes.Err() != nil && ctx.Err() == nil:
		return cancelled, nil
	case ctx.Err() != nil:
		return faulty, fmt.Errorf("it has not ended within %v", c.timeout)
	case err != nil:
		return faulty, err
	}
	e, err := judge(k, resp.StatusCode, body)
	if err == nil && k.bad && e != refused {
		return faulty, fmt.Errorf("what is bad was answered: %.200s", body)
	}
	return e, err
}

// take reads an answer as the kind does.
func take(from io.Reader, k *kind, r *rand.Rand, leave func()) ([]byte, error) {
	switch k.way {
	case left:
		first := make([]byte, 1+r.IntN(4000))
		n, err := io.ReadFull(from, first)
		if err == nil {
			leave()
		} else if err == io.ErrUnexpectedEOF || err == io.EOF {
			err = nil
		}
		return first[:n], err
	case slow:
		var all []byte
		piece := make([]byte, 256)
		for {
			n, err := from.Read(piece)
			all = append(all, piece[:n]...)
			if err == io.EOF {
				return all, nil
			} else if err != nil {
				return all, err
			}
			time.Sleep(time.Millisecond)
		}
	}
	return io.ReadAll(from)
}

// judge says whether an answer that was read to its end is whole, or an error that says why.
func judge(k *kind, status int, body []byte) (end, error) {
	if status != http.StatusOK {
		var e struct{ Error json.RawMessage }
		if err := json.Unmarshal(body, &e); err != nil || len(e.Error) < 4 || status == http.StatusInternalServerError || status < 400 {
			return faulty, fmt.Errorf("status %d with %.200s", status, body)
		}
		return refused, nil
	}
	last := bytes.TrimSpace(body)
	var is bool
	switch k.path {
	case message:
		is = bytes.Contains(last[bytes.LastIndexByte(last, '\n')+1:], []byte(`"type":"message_stop"`))
	case ollama:
		is = bytes.Contains(last[bytes.LastIndexByte(last, '\n')+1:], []byte(`"done":true`))
	default:
		is = bytes.HasPrefix(last, []byte("data:")) && bytes.HasSuffix(last, []byte("data: [DONE]")) || bytes.HasPrefix(last, []byte("{")) && json.Valid(last)
	}
	if !is || bytes.Contains(last, []byte(`"error":{`)) {
		return faulty, fmt.Errorf("no whole answer: …%s", last[max(0, len(last)-200):])
	}
	return answered, nil
}
