package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// events writes server-sent events. A sign of life goes out whenever nothing
// else has for a while: gateways cut silent connections. It is a whole, empty
// chunk, because comments and unnamed events break clients.
type events struct {
	rc      *http.ResponseController
	timeout time.Duration // for the client to take one event
	silence time.Duration // after which a sign of life is due

	mu   sync.Mutex // guards what follows
	w    http.ResponseWriter
	buf  bytes.Buffer
	idle *time.Timer // nil once closed
	err  error       // of the first write that failed
}

// openEvents begins a stream. alive makes the sign of life that is sent after
// every silence of length interval; gone is called when the client does not
// take one. Close must be called before the handler returns.
func openEvents(w http.ResponseWriter, timeout, interval time.Duration, alive func() any, gone func()) *events {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the stream back
	w.WriteHeader(http.StatusOK)
	e := &events{rc: http.NewResponseController(w), timeout: timeout, w: w, silence: interval}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = time.AfterFunc(interval, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.idle == nil {
			return
		}
		if e.write(alive()); e.err != nil {
			gone()
		}
	})
	return e
}

// send writes one event and hands it to the client at once; nil is no event.
// After a failure, which failed reports, nothing more is written.
func (e *events) send(v any) {
	if v == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(v)
}

// done writes the end mark.
func (e *events) done() { e.send(json.RawMessage("[DONE]")) }

// failed tells whether the client has stopped taking events.
func (e *events) failed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

// write needs mu.
func (e *events) write(v any) {
	if e.err != nil {
		return
	}
	e.idle.Reset(e.silence)
	e.buf.Reset()
	e.buf.WriteString("data: ")
	if mark, ok := v.(json.RawMessage); ok {
		e.buf.Write(mark)
		e.buf.WriteByte('\n')
	} else {
		enc := json.NewEncoder(&e.buf)
		enc.SetEscapeHTML(false)
		if e.err = enc.Encode(v); e.err != nil {
			return
		}
	}
	e.buf.WriteByte('\n')
	// Recorders in tests know no deadlines.
	_ = e.rc.SetWriteDeadline(time.Now().Add(e.timeout))
	if _, e.err = e.w.Write(e.buf.Bytes()); e.err == nil {
		e.err = e.rc.Flush()
	}
}

// Close ends the signs of life; the handler may return.
func (e *events) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle.Stop()
	e.idle = nil
	_ = e.rc.SetWriteDeadline(time.Time{})
}
