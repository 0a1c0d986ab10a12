package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
)

// bodyHandler answers a request whose body has been received and parsed.
type bodyHandler func(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error

// What a request holds, in bytes. A test measures what is made of bodies.
const (
	perRequest = 16 << 10 // whatever it asks
	perChoice  = 16 << 10 // of the answer
	longBody   = 64 << 10 // of a body whose reading is work to be bounded

	// How many bytes are made of a byte of the body, which is one of them.
	chatFactor        = 12
	completionsFactor = 6
	rewardsFactor     = 8
	tokenizeFactor    = 12
	detokenizeFactor  = 8
	templateFactor    = 12
)

// post makes a handler of one for JSON bodies. A request is let in before its
// body is received, and again before it costs more than memory: bodies may
// take a minute to arrive, and one that does takes nobody's place meanwhile.
// factor is how many bytes are made of a byte of the body, itself included.
func (s *Server) post(factor int64, handle bodyHandler) http.HandlerFunc {
	return s.serve(func(w http.ResponseWriter, r *http.Request) error {
		if err := wantJSON(r); err != nil {
			return err
		}
		rec := recordOf(r.Context())
		if err := s.admit(rec.key); err != nil {
			return err
		}
		rec.lease = s.memory.Lease()
		defer rec.lease.End()
		if err := rec.lease.Grow(perRequest); err != nil {
			return err
		}
		body, err := s.readBody(w, r, rec.lease)
		if err != nil {
			return err
		}
		leave, err := s.enter()
		if err != nil {
			return err
		}
		defer leave()
		if err := rec.lease.Grow(max(0, factor*int64(len(body))-int64(cap(body)))); err != nil {
			return err
		}
		ctx, cancel := s.answerTime(r.Context())
		defer cancel()
		fields, err := parseAside(ctx, body)
		if err != nil {
			return err
		}
		return handle(w, r.WithContext(ctx), fields)
	})
}

// parseAside is parseFields, which of a long body is work to be bounded.
func parseAside(ctx context.Context, body []byte) (*jsonread.Fields, error) {
	if len(body) > longBody {
		_, leave, err := cpulimit.Enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	return jsonread.Parse(body)
}

// wantJSON wants a body to be JSON. Programs that do not say so (curl -d says
// "form") are believed; a browser, which always names the Origin it writes
// from, is not: it sends other types to any server without asking that first.
func wantJSON(r *http.Request) error {
	unsupported := func(message string) error {
		return &apiError{Status: http.StatusUnsupportedMediaType, Type: typeInvalid, Code: "unsupported_media_type", Message: message}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return unsupported("The Content-Encoding '" + jsonread.Brief([]byte(e)) + "' is not supported; send the body as it is.")
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

// unreadBody is how long the rest of a body may take to arrive that nobody
// reads. net/http waits for it before it sends the answer, for clients that
// read none before they have sent all; by itself it would wait forever.
const unreadBody = 500 * time.Millisecond

// awaitBody sets the time for a request's body to arrive. Writers without
// deadlines are those of tests.
func awaitBody(rc *http.ResponseController, r *http.Request, timeout time.Duration) {
	if r.ContentLength != 0 {
		_ = rc.SetReadDeadline(time.Now().Add(timeout))
	}
}

// readBody receives a request's body within Options.BodyTimeout.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, l *admission.Lease) ([]byte, error) {
	if r.ContentLength > s.opt.MaxBody {
		return nil, &http.MaxBytesError{Limit: s.opt.MaxBody}
	}
	most := s.opt.MaxBody + 1 // one byte more than allowed shows that there is more
	if r.ContentLength >= 0 {
		most = r.ContentLength + 1 // and one more than announced that there is no more
	}
	rc := http.NewResponseController(w)
	awaitBody(rc, r, s.opt.BodyTimeout)
	body, err := readAll(http.MaxBytesReader(w, r.Body, s.opt.MaxBody), most, l)
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
	return nil, invalid(jsonread.CodeJSON, "", "The request body could not be read.")
}

// firstRead is the room that a body gets to begin with.
const firstRead = 4 << 10

// readAll reads all of r, of at most so many bytes. It takes memory as they
// arrive, whatever number was announced.
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

// finish reports the first fault, or else what to do about fields that nobody
// has read: those that ask for what no endpoint does are refused, and those
// that nobody knows refused or logged once.
func (s *Server) finish(f *jsonread.Fields) error {
	if f.Err != nil {
		return f.Err
	}
	for _, name := range f.Unread() {
		neutral, known := openai.Unsupported[name]
		switch {
		case known && neutral.Asks(f.Raw(name)):
			return invalid(jsonread.CodeUnsupported, name, "Invalid '%s': this server does not support it.", name)
		case known || openai.Harmless[name]:
			continue
		}
		if s.opt.Strict {
			return invalid(jsonread.CodeUnknown, name, "Unknown parameter: '%s'.", jsonread.Brief([]byte(name)))
		}
		if s.unknown.first(name) {
			s.log.Warn().Str("field", jsonread.Brief([]byte(name))).Msg("ignoring an unknown request field")
		}
	}
	return nil
}

// reply answers with what write writes, before ctx's deadline. That a client has
// not taken it is for the log alone.
func (s *Server) reply(ctx context.Context, w http.ResponseWriter, write func(p *jsonwrite.Reply)) {
	end, _ := ctx.Deadline()
	p := jsonwrite.NewReply(w, s.opt.WriteTimeout, end)
	write(p)
	if p.Done() != nil {
		recordOf(ctx).err = context.Canceled
	}
}
