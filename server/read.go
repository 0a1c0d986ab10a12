package server

import (
	"context"
	"errors"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// perText is the number of bytes that a text holds besides itself, its tokens and its numbers.
const perText = 1 << 10

// read answers a request for what a model makes of texts.
func (r *runner) read(c *api.Call, reading *api.Reading) error {
	acc := &account{strategy: reading.Task, Request: metrics.Request{Start: c.Start, N: reading.Texts}}
	if reading.Model != nil {
		acc.Model = reading.Model.Name
	}
	recordOf(c.Context()).answeredBy(acc)
	if err := c.Lease.Grow(int64(reading.Texts) * (perText + 16*int64(reading.Width))); err != nil {
		return err
	}
	settle, err := r.reserve(c, 0)
	if err != nil {
		return err
	}
	defer func() { settle(acc.Usage.Prompt) }()
	ctx := c.Context()
	spent, err := reading.Read(ctx)
	acc.read(spent)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return textFault(reading, err)
	}
	acc.finished(tts.FinishStop)
	return c.Reply(func(p *jsonwrite.Reply) { reading.Write(p, spent) })
}

// textFault names the text that an error is about, if it is about one.
func textFault(r *api.Reading, err error) error {
	var fault *embed.TextError
	var long *tts.ContextError
	switch {
	case !errors.As(err, &fault):
	case errors.As(err, &long):
		return api.Invalid(api.CodeContext, r.Field(fault), "This model's maximum context length is %d tokens. However, '%s' has at least %d tokens. Please shorten it.", long.Limit, r.Field(fault), long.Prompt)
	case errors.Is(err, tts.ErrEmpty):
		return api.Invalid(jsonread.CodeValue, r.Field(fault), "Invalid '%s': it is empty.", r.Field(fault))
	}
	return err
}
