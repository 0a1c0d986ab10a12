package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// receive completes a call by its body, of which the route makes a factor of bytes, and then answers it. A
// request is admitted before its body is received, and again before it costs more than memory. A body may
// take a minute to arrive, and has no place until then.
func (a *admitter) receive(c *api.Call, route *api.Route, answer func(*api.Call) error) error {
	if err := wantJSON(c.Request); err != nil {
		return err
	}
	err := a.admit(c.Key)
	a.apis.showRates(c)
	if err != nil {
		return err
	}
	c.Lease = a.memory.Lease()
	defer c.Lease.End()
	if err := c.Lease.Grow(perRequest); err != nil {
		return err
	}
	body, err := a.readBody(c.W, c.Request, c.Lease)
	if err != nil {
		return err
	}
	leave, err := a.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	a.requests.enter(recordOf(c.Context()), route.Path)
	if err := c.Lease.Grow(max(0, route.Factor*int64(len(body))-int64(cap(body)))); err != nil {
		return err
	}
	c.Size = len(body)
	ctx, cancel := a.answerTime(c.Context())
	defer cancel()
	if route.List != "" && jsonread.Kind(body) == "a list" {
		body = slices.Concat([]byte(`{"`+route.List+`":`), body, []byte("}"))
	}
	if c.Body, err = parseAside(ctx, body); err != nil {
		return err
	}
	if a.noted != nil {
		c.Body = jsonread.Noted(c.Body, a.noted(route.Path))
	}
	c.Request = c.WithContext(ctx)
	return answer(c)
}

// answerTime returns a context that ends when a whole answer has taken too long.
func (a *admitter) answerTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.opt.RequestTimeout > 0 {
		return context.WithTimeout(ctx, a.opt.RequestTimeout)
	}
	return context.WithCancel(ctx)
}

// parseAside parses a body, a long one as work alongside the engines.
func parseAside(ctx context.Context, body []byte) (*jsonread.Fields, error) {
	if len(body) > longBody {
		_, leave, err := cpulimit.Enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	fields, err := jsonread.Parse(body)
	if err != nil {
		return nil, err
	}
	return fields.Within(ctx), nil
}

// wantJSON refuses bodies that are not said to be JSON by a browser, which always
// sends an Origin: other types it would send to any server without asking that first.
// Programs need not say so; curl -d says "form".
func wantJSON(r *http.Request) error {
	unsupported := func(message string) error {
		return api.InvalidStatus(http.StatusUnsupportedMediaType, "unsupported_media_type", "", message)
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return unsupported("The Content-Encoding '" + jsonread.Brief(e) + "' is not supported; send the body as it is.")
	}
	if r.Header.Get("Origin") == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return unsupported("The Content-Type must be application/json.")
	}
	return nil
}

// unreadBody is the time in which the rest of an unread body may arrive. net/http waits for it
// before it sends the answer, because some clients read nothing until they have sent all. Without
// this bound it would wait forever.
const unreadBody = 500 * time.Millisecond

// awaitBody sets the time for a request's body to arrive. Only tests have writers
// without deadlines.
func awaitBody(rc *http.ResponseController, r *http.Request, timeout time.Duration) {
	if r.ContentLength != 0 {
		_ = rc.SetReadDeadline(time.Now().Add(timeout))
	}
}

// readBody receives a request's body within Options.BodyTimeout.
func (a *admitter) readBody(w http.ResponseWriter, r *http.Request, l *admission.Lease) ([]byte, error) {
	if r.ContentLength > a.opt.MaxBody {
		return nil, &http.MaxBytesError{Limit: a.opt.MaxBody}
	}
	most := a.opt.MaxBody + 1 // a byte more than allowed shows that there is more
	if r.ContentLength >= 0 {
		most = r.ContentLength + 1 // and a byte more than announced, that there is not
	}
	rc := http.NewResponseController(w)
	awaitBody(rc, r, a.opt.BodyTimeout)
	body, err := readAll(http.MaxBytesReader(w, r.Body, a.opt.MaxBody), most, l)
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{}) // it would end long streams
		return body, nil
	}
	awaitBody(rc, r, unreadBody)
	var tooLarge *http.MaxBytesError
	var never *admission.MemoryError
	switch {
	case errors.As(err, &tooLarge), errors.As(err, &never), errors.Is(err, admission.ErrBusy):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlowBody
	}
	return nil, api.Invalid(jsonread.CodeJSON, "", "The request body could not be read.")
}

// firstRead is the room that a body gets to begin with.
const firstRead = 4 << 10

// readAll reads all of r, at most most bytes. It takes memory as they arrive,
// whatever number was announced.
func readAll(r io.Reader, most int64, l *admission.Lease) ([]byte, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			size := min(max(firstRead, 2*int64(cap(body))), most)
			if err := l.Grow(size); err != nil {
				return nil, err
			}
			grown := append(make([]byte, 0, size), body...)
			l.Free(int64(cap(body)))
			body = grown
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
