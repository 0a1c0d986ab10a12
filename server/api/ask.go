package api

import (
	"context"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
)

// PerID is about how many bytes are held for a token's id: itself, and as text.
const PerID = 16

// Ask is a checked request for text.
type Ask struct {
	Model    *registry.Model
	Name     string          // of the model as the client calls it
	Preset   *scaling.Plan   // that the name asks for; nil: none
	Requests []*tts.Request  // one a prompt; choice i of prompt p is choice p*n+i of the answer
	Asked    *ScalingRequest // the search that the request asks for, as it does; nil: none
	Choice   *profile.Choice // what was chosen for the quality or the deadline of a request; nil: nothing was
	Search   *search.Search  // nil: each choice is one sample
	Applied  bool            // the answer's header names the search
	Filters  []tts.Filter    // which the answer's events pass
	Encoder  Encoder
	Stream   bool
	Lines    bool  // a stream is lines of JSON in place of events
	Kept     bool  // what is streamed is held until the end
	PerToken int64 // bytes that are held for a token

	// Begin, unless it is nil, gets a way to cancel the answer, and returns what is to be
	// called at its end.
	Begin func(cancel context.CancelCauseFunc) (end func())
	// Instead is the answer where nothing is to be generated; nil: it is.
	Instead any
}

// ScalingRequest is a plan that a request asks for, and the field that it came in.
type ScalingRequest struct {
	Plan  *scaling.Plan
	Param string
}

// Strategy returns how each prompt is answered.
func (a *Ask) Strategy() tts.Strategy {
	if a.Search != nil {
		return a.Search
	}
	return tts.Single{Model: a.Model.Model}
}

// Choices returns the number of choices in the answer.
func (a *Ask) Choices() int { return len(a.Requests) * a.Requests[0].N }

// Prepare prepares a prompt for the model as work alongside the engines, even a short one.
func (a *Ask) Prepare(ctx context.Context, p *tts.Prompt) (*tts.Prepared, error) {
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return a.Model.Prepare(ctx, p, 0)
}

// Counter returns what counts the tokens of a prompt.
func (a *Ask) Counter(ctx context.Context) func(*tts.Prompt) (int, error) {
	return func(p *tts.Prompt) (int, error) {
		prepared, err := a.Prepare(ctx, p)
		if err != nil {
			return 0, err
		}
		return len(prepared.Tokens), nil
	}
}

// Reading is a checked request for what a model makes of texts.
type Reading struct {
	Model *registry.Model // nil: the request is not counted among its requests
	Task  string
	Texts int
	Width int                                  // numbers that each of them gives
	Read  func(context.Context) (int, error)   // returns the tokens that were read
	Field func(*embed.TextError) string        // names the field of a text that is at fault
	Write func(p *jsonwrite.Reply, tokens int) // writes the answer
}
