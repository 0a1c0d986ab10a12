package jsonwrite

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// Events writes server-sent events. After a silence it writes a keep-alive chunk,
// because gateways cut silent connections. That is a whole, empty chunk, because
// comments and unnamed events break clients.
//
// Events gather until they are flushed: handing them to the system and waking the
// client cost far more than making them.
type Events struct {
	rc      *http.ResponseController
	timeout time.Duration // for the client to take what is flushed
	silence time.Duration // after which a keep-alive chunk is due
	lines   bool          // a line of JSON in place of each event

	mu    sync.Mutex // guards what follows
	w     http.ResponseWriter
	buf   bytes.Buffer // events not flushed
	timer *time.Timer  // of the next flush or keep-alive chunk; nil once closed
	due   time.Time    // when that is
	later bool         // the timer is for a flush
	err   error        // of the first write that failed
}

const (
	flushDelay = 20 * time.Millisecond // nobody notices
	maxPending = 16 << 10              // bytes of events that gather
)

// OpenEvents begins a stream. keepAlive makes the chunk that is sent after every
// silence of length interval; gone is called when the client does not take one.
// Close must be called before the handler returns, and panics as keepAlive has. With lines each event is a line of
// JSON, as Ollama's clients read them.
func OpenEvents(w http.ResponseWriter, lines bool, timeout, interval time.Duration, keepAlive func() any, gone func()) *Events {
	openStream(w, lines)
	e := &Events{rc: http.NewResponseController(w), timeout: timeout, w: w, silence: interval, lines: lines}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due = time.Now().Add(interval)
	e.timer = time.AfterFunc(interval, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.timer == nil || time.Now().Before(e.due) { // what held mu meanwhile has set it anew
			return
		}
		if err := parallel.Try(func() error { e.beat(keepAlive); return nil }); err != nil {
			e.err = err
		}
		if e.err != nil {
			gone()
		}
	})
	return e
}

// beat sends what has gathered, or else a keep-alive chunk. It needs mu.
func (e *Events) beat(keepAlive func() any) {
	if e.buf.Len() == 0 && !e.later {
		e.write(keepAlive())
	}
	e.push()
}

// openStream writes the header of a stream, where it has not been written.
func openStream(w http.ResponseWriter, lines bool) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	if lines {
		h.Set("Content-Type", "application/x-ndjson")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the stream back
	w.WriteHeader(http.StatusOK)
}

// Event is an event.
type Event struct {
	Name string // empty: it has none, as OpenAI's
	Data any
}

// List is several events, one after the other.
type List []Event

// Add writes one event, or a List, which is sent by the next flush; nil is no event.
// After a failure, which Failed reports, nothing more is written.
func (e *Events) Add(v any) { e.Make(func() any { return v }) }

// Make adds what chunk makes. No keep-alive chunk is made or sent meanwhile, so both may
// change the same things.
func (e *Events) Make(chunk func() any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.write(chunk()); e.buf.Len() > maxPending {
		e.push()
	}
}

// Flush sends what has gathered.
func (e *Events) Flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.buf.Len() > 0 {
		e.push()
	}
}

// Later flushes in a moment, unless that happens sooner: the headers, if nothing has
// gathered.
func (e *Events) Later() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.later = true
	e.wake(min(flushDelay, e.silence))
}

// Done is the end mark of OpenAI's streams.
var Done = json.RawMessage("[DONE]")

// Failed tells whether the client has stopped taking events.
func (e *Events) Failed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

// wake needs mu.
func (e *Events) wake(in time.Duration) {
	e.due = time.Now().Add(in)
	e.timer.Reset(in)
}

// write needs mu.
func (e *Events) write(v any) {
	if e.err != nil || v == nil {
		return
	}
	switch named := v.(type) {
	case List:
		for i := range named {
			e.write(named[i])
		}
		return
	case Event:
		if named.Name != "" {
			e.buf.WriteString("event: " + named.Name + "\n")
		}
		v = named.Data
	}
	if e.lines {
		e.err = Encode(&e.buf, v)
		return
	}
	e.buf.WriteString("data: ")
	switch v := v.(type) {
	case *Template:
		e.err = v.write(&e.buf)
	case json.RawMessage:
		e.buf.Write(v)
		e.buf.WriteByte('\n')
	default:
		e.err = Encode(&e.buf, v)
	}
	e.buf.WriteByte('\n')
}

// push needs mu.
func (e *Events) push() {
	if e.err != nil {
		return
	}
	e.wake(e.silence)
	e.later = false
	// Recorders in tests know no deadlines.
	_ = e.rc.SetWriteDeadline(time.Now().Add(e.timeout))
	if _, e.err = e.w.Write(e.buf.Bytes()); e.err == nil {
		e.err = e.rc.Flush()
	}
	e.buf.Reset()
}

// End adds what last makes and sends all that has gathered. No keep-alive chunk comes
// among the last ones or after them.
func (e *Events) End(last func() any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(last())
	e.push()
	e.close()
}

// Close ends the keep-alive chunks; the handler may return.
func (e *Events) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.close()
}

// close needs mu.
func (e *Events) close() {
	if e.timer == nil {
		return
	}
	e.timer.Stop()
	e.timer = nil
	_ = e.rc.SetWriteDeadline(time.Time{})
	parallel.Raise(e.err)
}
