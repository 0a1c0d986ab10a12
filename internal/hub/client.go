package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// What a server may take of this program's time and memory.
const (
	maxRedirects  = 5
	maxHeader     = 64 << 10         // bytes of a response's header
	headerTimeout = time.Minute      // until a response's header is there
	stallTimeout  = 30 * time.Second // that one read of a body may take
	listTimeout   = 5 * time.Minute  // for a whole list of files, however it trickles
	maxRetryAfter = 2 * time.Minute  // that a server may ask to wait
	firstRetry    = time.Second      // doubled after every failure
	lastRetry     = 30 * time.Second // at most
	maxFailures   = 5                // in a row
)

// ErrUnreachable is the kind of error that says that the hub does not answer.
var ErrUnreachable = errors.New("the hub cannot be reached")

// client asks the hub.
type client struct {
	endpoint *url.URL
	token    string
	agent    string
	http     *http.Client

	wait func(context.Context, time.Duration) error
	// retrying is called after failures, before the same is asked again; it may be nil.
	retrying func(err error, pause time.Duration)
	chose    func(file, why string) // as Options.Chose
	unused   func(what string)      // as Options.Unused
	memory   func() int64           // as Options.Memory
}

func newClient(o Options) (*client, error) {
	u, err := url.Parse(strings.TrimRight(o.Endpoint, "/"))
	if err != nil {
		return nil, err
	}
	return &client{endpoint: u, token: o.Token, unused: o.Unused, memory: o.Memory, agent: o.Agent, wait: sleep, retrying: o.Retrying, chose: o.Chose, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    30 * time.Second,
			ResponseHeaderTimeout:  headerTimeout,
			IdleConnTimeout:        time.Minute,
			MaxIdleConnsPerHost:    connections,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true, // offsets count the file's own bytes
			// No HTTP/2: it would send all parts over one connection.
		},
	}}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watchedBody is a response's body each of whose reads ends after stallTimeout at most.
// The time between reads, when a disk may be slow, does not count.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	stall  *time.Timer
}

// watchBody lets a stalled read end a request. It calls cancel, which ends the request's ctx, when the
// body is closed.
func watchBody(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response) {
	stall := time.AfterFunc(stallTimeout, func() { cancel(temporary{fmt.Errorf("nothing comes for %v", stallTimeout)}) })
	stall.Stop() // until somebody reads
	resp.Body = &watchedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, stall: stall}
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.stall.Reset(stallTimeout)
	n, err := b.ReadCloser.Read(p)
	b.stall.Stop()
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.stall.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// at returns a URL of the endpoint; parts are escaped.
func (c *client) at(parts ...string) *url.URL { return c.endpoint.JoinPath(escaped(parts)...) }

func escaped(parts []string) []string {
	list := make([]string, len(parts))
	for i, p := range parts {
		words := strings.Split(p, "/")
		for j, w := range words {
			words[j] = url.PathEscape(w)
		}
		list[i] = strings.Join(words, "/")
	}
	return list
}

// ours tells whether a URL is the endpoint's, which alone gets the token.
func (c *client) ours(u *url.URL) bool {
	return u.Scheme == c.endpoint.Scheme && strings.EqualFold(u.Host, c.endpoint.Host)
}

// answer is a response with what the endpoint said of the file on the way to it.
type answer struct {
	*http.Response
	commit, etag string // X-Repo-Commit, X-Linked-Etag; empty: not said
	size         int64  // X-Linked-Size; -1: not said
}

// send makes a request and follows redirects, with stay only those within the
// endpoint. The caller closes the body, no read of which waits longer than stallTimeout.
func (c *client) send(ctx context.Context, method string, u *url.URL, header http.Header, stay bool) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a, err := c.follow(ctx, method, u, header, stay)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	watchBody(ctx, cancel, a.Response)
	return a, nil
}

// follow sends as send does, without the watch.
func (c *client) follow(ctx context.Context, method string, u *url.URL, header http.Header, stay bool) (*answer, error) {
	a := &answer{size: -1}
	for hops := 0; ; hops++ {
		req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
		if err != nil {
			return nil, err
		}
		for key, values := range header {
			req.Header[key] = values
		}
		req.Header.Set("User-Agent", c.agent)
		req.Header.Set("Accept-Encoding", "identity")
		if c.token != "" && c.ours(u) {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, temporary{fmt.Errorf("%w at %s: %w", ErrUnreachable, u.Host, withoutURL(err))}
		}
		a.Response = resp
		if c.ours(u) {
			if err := a.note(resp.Header); err != nil {
				resp.Body.Close()
				return nil, err
			}
		}
		if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.StatusCode == http.StatusNotModified {
			return a, nil
		}
		next, err := c.redirect(u, resp)
		if err == nil && stay && !c.ours(next) {
			return a, nil
		}
		resp.Body.Close()
		if err == nil && hops == maxRedirects {
			err = fmt.Errorf("%s: more than %d redirects", u.Host, maxRedirects)
		}
		if err != nil {
			return nil, err
		}
		u = next
	}
}

// redirect returns where resp leads; never from https to anything else.
func (c *client) redirect(from *url.URL, resp *http.Response) (*url.URL, error) {
	to, err := resp.Location()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s answers %s and does not say where to go", from.Host, resp.Status)
	case to.Scheme != "https" && to.Scheme != "http", to.Host == "", from.Scheme == "https" && to.Scheme != "https":
		return nil, fmt.Errorf("%s redirects to %q, which is refused", from.Host, brief(to.Scheme+"://"+to.Host))
	}
	to.User = nil
	return to, nil
}

// note keeps what the endpoint says of a file.
func (a *answer) note(h http.Header) error {
	if v := h.Get("X-Repo-Commit"); v != "" {
		a.commit = v
	}
	if v := h.Get("X-Linked-Etag"); v != "" {
		a.etag = unquoted(v)
	}
	if v := h.Get("X-Linked-Size"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("the hub says that a file has %q bytes", brief(v))
		}
		a.size = n
	}
	return nil
}

// unquoted returns an ETag as the cache's file names have it.
func unquoted(etag string) string {
	return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
}

// withoutURL takes the URL off an error, since URLs of files are signed and long.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
