package jsonwrite

import (
	"net/http"
	"sync"
	"time"
)

// Waiting writes a sign of life after every silence, before a stream has an event: its first
// one begins the stream.
type Waiting struct {
	mu    sync.Mutex // guards what follows
	timer *time.Timer
	begun bool
	ended bool
}

// Wait begins to wait. A sign of life is a comment, or where line is not nil what it makes, as a
// line of JSON. Nothing is written within the first interval.
func Wait(w http.ResponseWriter, timeout, interval time.Duration, comment func() string, line func() any) *Waiting {
	rc := http.NewResponseController(w)
	p := &Waiting{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(interval, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended {
			return
		}
		if !p.begun {
			openStream(w, line != nil)
			p.begun = true
		}
		_ = rc.SetWriteDeadline(time.Now().Add(timeout)) // recorders in tests know no deadlines
		var err error
		if line != nil {
			err = Encode(w, line())
		} else {
			_, err = w.Write([]byte(": " + comment() + "\n\n"))
		}
		if err == nil {
			err = rc.Flush()
		}
		if err == nil { // else the client has gone, as its context tells
			p.timer.Reset(interval)
		}
	})
	return p
}

// End ends the waiting, and tells whether the stream has begun.
func (p *Waiting) End() (begun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.timer.Stop()
	return p.begun
}
