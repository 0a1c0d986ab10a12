package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/server/admission"
)

// ErrAtOnce, as the cause of the end of Serve's context, leaves out the lame-duck
// time. It is the right cause when a person has stopped the server.
var ErrAtOnce = errors.New("server: stop at once")

// drain ends a server:
//
//	lame duck ──▶ listener closed ──▶ running requests end ──▶ the rest is cancelled
//
// From the beginning, new requests and probes for readiness are answered with 503.
// The lame-duck time lets those who send requests, such as an orchestrator, notice;
// connections to a closed listener would be errors that clients see.
type drain struct {
	opt    *Options
	models *published
	places *admission.Places // of requests under way
	lines  *LogLines         // whose followers end too
	srv    *http.Server
	silent *silentConns
	until  time.Time // when connections are cut
	cancel context.CancelCauseFunc
}

// cancelledGrace is the last part of Options.DrainTimeout, for cancelled requests to say so.
const cancelledGrace = time.Second

func (d *drain) run(cause error, stopped <-chan struct{}) error {
	log := d.opt.Log
	wasReady := d.models.ready() == nil
	d.models.draining.Store(true)
	d.lines.wake()
	d.srv.SetKeepAlivesEnabled(false)
	lame := min(d.opt.LameDuck, max(0, d.opt.DrainTimeout-cancelledGrace))
	if !wasReady || errors.Is(cause, ErrAtOnce) { // nobody sends requests, or nobody has to notice
		lame = 0
	}
	log.Info().Int64("requests", d.places.Taken()).Dur("lame_duck_ms", lame).Msg("stopping: new requests are refused")
	select {
	case <-time.After(lame):
	case <-stopped:
		return nil
	}
	cancelled := d.until.Add(-cancelledGrace)
	if n := d.places.Taken(); n > 0 {
		log.Info().Int64("requests", n).Dur("timeout_ms", max(0, time.Until(cancelled))).Msg("waiting for running requests")
	}
	if d.shutdown(cancelled) {
		log.Info().Msg("stopped")
		return nil
	}
	log.Warn().Int64("requests", d.places.Taken()).Msg("the drain timeout ends: cancelling requests")
	d.cancel(errDraining)
	if d.shutdown(time.Now().Add(cancelledGrace)) {
		log.Info().Msg("stopped")
		return nil
	}
	// These clients do not even take their error.
	log.Warn().Int64("requests", d.places.Taken()).Msg("stopped: connections were cut")
	return d.srv.Close()
}

// shutdown closes the listener and waits for the requests until then. It tells
// whether all of them have ended.
func (d *drain) shutdown(until time.Time) bool {
	ctx, done := context.WithDeadline(context.Background(), until)
	defer done()
	d.silent.close()
	return d.srv.Shutdown(ctx) == nil
}

// silentConns are the connections over which no request has come yet. Browsers open
// some in advance, and Shutdown would wait seconds for each of them.
type silentConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	done  bool
}

// track is an http.Server's ConnState.
func (c *silentConns) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(c.conns, conn)
	case c.done:
		conn.Close()
	default:
		if c.conns == nil {
			c.conns = make(map[net.Conn]struct{})
		}
		c.conns[conn] = struct{}{}
	}
}

// close closes them, and those to come.
func (c *silentConns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	for conn := range c.conns {
		conn.Close()
	}
}
