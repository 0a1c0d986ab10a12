package server

import (
	"fmt"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
)

// hold leases the model that a request asks for until the call ends. A client that is going to
// get a stream is kept patient while the model loads.
func (p *published) hold(c *api.Call, name string, tasks ...string) (*registry.Registry, error) {
	set, err := p.known()
	if err != nil {
		return nil, err
	}
	if err := c.Access(set, name, tasks...); err != nil {
		return nil, err
	}
	w := &waiting{c: c}
	lease, err := set.Hold(c.Context(), name, w.begin, tasks...)
	w.end()
	if err != nil {
		return nil, err
	}
	c.Held = append(c.Held, lease)
	return lease.Registry, nil
}

// release ends the leases of a call.
func release(c *api.Call) {
	for _, lease := range c.Held {
		lease.Release()
	}
}

// awaitsStream notes whether the answer to a request for text will be a stream, and of what.
func awaitsStream(c *api.Call, p *api.Protocol) {
	wanted := c.Body.Raw("stream")
	c.Waiting = p.Waiting
	c.Streams = string(wanted) == "true" || p.Waiting != nil && wanted == nil
}

// waiting is the beginning of a stream that has nothing to say yet: where events follow,
// comments that tell how much of the model has been read.
type waiting struct {
	c      *api.Call
	stream *jsonwrite.Waiting // nil: the request waits for nothing
}

// begin has the client hear of it when it has waited for a while.
func (w *waiting) begin(model string, progress func() float64) {
	if !w.c.Streams {
		return
	}
	comment := func() string { return fmt.Sprintf("loading %q, %.0f %%", model, 100*progress()) }
	var line func() any
	if w.c.Waiting != nil {
		line = func() any { return w.c.Waiting(w.c) }
	}
	w.stream = jsonwrite.Wait(w.c.W, w.c.WriteTimeout, w.c.KeepAlive, comment, line)
}

// end has nothing more written.
func (w *waiting) end() {
	if w.stream != nil && w.stream.End() {
		recordOf(w.c.Context()).waiting = w
	}
}

// fail ends the stream with a fault, as its API writes it.
func (w *waiting) fail(body any) {
	out := jsonwrite.OpenEvents(w.c.W, w.c.Waiting != nil, w.c.WriteTimeout, w.c.KeepAlive, func() any { return nil }, func() {})
	out.End(func() any { return body })
}
