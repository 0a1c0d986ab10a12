package ollama

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/residency"
)

// keepAlive reads how long the call's model stays in memory after this request. Clients send it
// unasked, so that from a key which may not change what others get it does nothing, and a header
// says so.
func keepAlive(c *api.Call) error {
	raw, ok := c.Body.Take("keep_alive")
	if !ok {
		return nil
	}
	d, ok := duration(raw)
	if !ok {
		c.Body.WrongType("keep_alive", `a duration such as "10m", or a number of seconds`, raw)
		return c.Body.Err
	}
	if !c.Key.Rules() {
		c.W.Header().Add(api.Warning, "keep_alive is not applied: it takes an admin key")
		return nil
	}
	for _, lease := range c.Held {
		lease.KeepAlive(d)
	}
	return nil
}

// duration reads "10m", a number of seconds, or one as a text; negative: forever.
func duration(raw json.RawMessage) (d time.Duration, ok bool) {
	text, isText := jsonread.Text(raw)
	if !isText {
		text = string(raw)
	} else if d, err := time.ParseDuration(text); err == nil {
		return max(d, -1), true
	}
	seconds, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || seconds != seconds:
		return 0, false
	case seconds < 0 || seconds > math.MaxInt64/2/float64(time.Second):
		return -1, true
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// unloads tells whether a request wants its model unloaded: it has nothing to answer, and
// nothing is to stay.
func unloads(c *api.Call) bool {
	d, ok := duration(c.Body.Raw("keep_alive"))
	if !ok || d != 0 {
		return false
	}
	for _, field := range []string{"prompt", "messages", "system"} {
		switch string(c.Body.Raw(field)) {
		case "", "null", `""`, "[]":
		default:
			return false
		}
	}
	return true
}

// unload answers such a request.
func unload(c *api.Call, chat bool) (*api.Ask, error) {
	e, reason := &encoder{model: c.Name(), chat: chat}, "unload"
	models, err := c.Known(e.model)
	if err != nil {
		return nil, err
	}
	if !c.Key.Rules() {
		return nil, api.ErrAdmin
	}
	switch err := models.Unload(e.model); {
	case errors.Is(err, residency.ErrPinned):
		reason = "load" // it stays
	case err != nil && !errors.Is(err, residency.ErrAbsent):
		return nil, err
	}
	f := reader{c.Body}
	f.streaming()
	f.bookkeeping()
	f.Ignore("model", "keep_alive", "prompt", "messages", "system", "options", "format", "think", "raw", "context", "tools")
	return &api.Ask{Instead: e.said(reason)}, fields.Finish(c)
}
