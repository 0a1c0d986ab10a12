package jsonwrite

import (
	"net/http"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// Waiting writes a sign of life after every silence, before a stream has an event: its first
// one begins the stream.
type Waiting struct {
	mu    sync.Mutex // guards what follows
	timer *time.Timer
	begun bool
	ended bool
	err   error // of the last sign of life
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
		p.err = parallel.Try(func() error {
			if !p.begun {
				p.begun = true
				openStream(w, line != nil)
			}
			_ = rc.SetWriteDeadline(time.Now().Add(timeout)) // recorders in tests know no deadlines
			var err error
			if line != nil {
				err = Encode(w, line())
			} else {
				_, err = w.Write([]byte(": " + comment() + "\n\n"))
			}
			if err != nil {
				return err
			}
			return rc.Flush()
		})
		if p.err == nil { // else the client has gone, as its context tells
			p.timer.Reset(interval)
		}
	})
	return p
}

// End ends the waiting, and tells whether the stream has begun. It panics as a sign of life has.
func (p *Waiting) End() (begun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.timer.Stop()
	parallel.Raise(p.err)
	return p.begun
}
