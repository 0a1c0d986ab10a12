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

// perText is how many bytes a text holds besides itself, its tokens and its numbers.
const perText = 1 << 10

// read answers a request for what a model makes of texts.
func (s *Server) read(c *api.Call, r *api.Reading) error {
	acc := &account{strategy: r.Task, Request: metrics.Request{Start: c.Start, N: r.Texts}}
	if r.Model != nil {
		acc.Model = r.Model.Name
	}
	recordOf(c.Context()).answeredBy(acc)
	if err := c.Lease.Grow(int64(r.Texts) * (perText + 16*int64(r.Width))); err != nil {
		return err
	}
	settle, err := s.reserve(c, 0)
	if err != nil {
		return err
	}
	defer func() { settle(acc.Usage.Prompt) }()
	ctx := c.Context()
	spent, err := r.Read(ctx)
	acc.read(spent)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return textFault(r, err)
	}
	acc.finished(tts.FinishStop)
	return c.Reply(func(p *jsonwrite.Reply) { r.Write(p, spent) })
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
