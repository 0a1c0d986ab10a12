package api

import (
	"context"
	"net/http"
	"time"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Server is the part of the server that APIs use.
type Server struct {
	Models func() (*residency.Set, error) // an error until there are any
	// Hold keeps the model that a request asks for in memory until the call ends, and waits
	// until it is there (residency.Set.Hold). The registry has it.
	Hold            func(c *Call, name string, tasks ...string) (*registry.Registry, error)
	MaxChoices      int    // of an answer
	ReasoningFormat string // of requests that name none
	Limits          scaling.Limits
	Standard        *scaling.Plan            // the search of requests that ask for none; nil: none
	Alternates      []string                 // models of which any may answer a request with a quality for one of them
	Unknown         func(field string) error // what becomes of a request's field that nobody knows; nil: nothing
	WriteTimeout    time.Duration            // for a client to take a piece of an answer
	KeepAlive       time.Duration            // between the signs of life of a stream
	Version         string                   // of the program
}

// Call is a request that has been let in.
type Call struct {
	*http.Request // its context ends with the time for an answer
	*Server

	W     http.ResponseWriter
	ID    string
	Start time.Time
	Key   *admission.Key   // that the client has shown
	Body  *jsonread.Fields // nil: the route reads none
	Size  int              // bytes of the body
	Lease *admission.Lease // the memory that the request holds; nil without a body

	Held    []*residency.Lease // of its models
	Streams bool               // the answer is going to be a stream
	Waiting func(*Call) any    // as Protocol has it
}

// Name returns the name of the model that the request asks for, as far as it is a text.
func (c *Call) Name() string {
	name, _ := jsonread.Text(c.Body.Raw("model"))
	return name
}

// Model reads the model that the request names, as an Ask.
func (c *Call) Model() (*Ask, error) {
	a := &Ask{}
	c.Body.String("model", &a.Name)
	if c.Body.Err != nil {
		return nil, c.Body.Err
	}
	models, err := c.Hold(c, a.Name)
	if err != nil {
		return nil, err
	}
	if a.Model, a.Preset, err = models.Find(a.Name); err != nil {
		return nil, err
	}
	if a.Name == "" {
		a.Name = a.Model.Name
	}
	a.Model, err = adapted(c, a.Model)
	return a, err
}

// Generator is Model for requests that want text written.
func (c *Call) Generator() (*Ask, error) {
	a, err := c.Model()
	if err == nil && a.Model.Rank != nil {
		return nil, Invalid(jsonread.CodeValue, "model", "The model '%s' writes no text. Send what it is to read to /v1/embeddings, /v1/rerank or /v1/score.", jsonread.Brief(a.Name))
	}
	if err == nil && a.Model.Reward != nil {
		return nil, Invalid(jsonread.CodeValue, "model", "The model '%s' judges answers and writes none. Send them to /v1/rewards.", jsonread.Brief(a.Name))
	}
	return a, err
}

// Reader finds the model of a request that only reads texts. find looks a name up; a request without a name
// gets a model for the first of tasks that has one.
func (c *Call) Reader(find func(*registry.Registry, string) (*registry.Model, error), tasks ...string) (*registry.Model, error) {
	var name string
	c.Body.String("model", &name)
	if c.Body.Err != nil {
		return nil, c.Body.Err
	}
	models, err := c.Hold(c, name, tasks...)
	if err != nil {
		return nil, err
	}
	m, err := find(models, name)
	if err != nil {
		return nil, err
	}
	return adapted(c, m)
}

// Reply answers with what write writes, before the deadline of the context. It returns
// context.Canceled if the client does not take all of it.
func (c *Call) Reply(write func(p *jsonwrite.Reply)) error {
	end, _ := c.Context().Deadline()
	p := jsonwrite.NewReply(c.W, c.WriteTimeout, end)
	write(p)
	if p.Done() != nil {
		return context.Canceled
	}
	return nil
}

// JSON answers with v.
func (c *Call) JSON(v any) error {
	WriteJSON(c.W, http.StatusOK, v)
	return nil
}

// WriteJSON answers with v. That a client has gone shows in its context.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = jsonwrite.Encode(w, v)
}

// What requests and answers of all APIs have of Lutra's own.
const (
	ScalingField   = "test_time_scaling" // in the body, and within its metadata
	ScalingHeader  = "X-Lutra-Scaling"
	ScalingApplied = "X-Lutra-Scaling-Applied" // the answer's header that says what was done
	// ScalingExpected is the answer's header that says what that is expected to reach and take.
	ScalingExpected = "X-Lutra-Scaling-Expected"
	Warning         = "X-Lutra-Warning" // the answer's header that says what it is not held to
)
