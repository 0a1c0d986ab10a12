// Package api has the types between the server and the APIs that it speaks: an admitted request, what it asks
// for, and the encoder of its answer.
package api

import (
	"net/http"

	"github.com/lutra-lm/lutra/server/admission"
)

// Protocol is an API that the server speaks.
type Protocol struct {
	Routes []Route
	// Owns reports whether a request, of whatever path, is one of its clients'; nil: it is
	// where no other API says so.
	Owns func(*http.Request) bool
	// Failure writes a fault of the request with an id, as a jsonwrite.Event where a stream has
	// it as one.
	Failure func(f *Fault, id string) any
	// Waiting makes the line that keeps a client patient whose model is being loaded, where
	// streams are lines of JSON, and the rule; nil: they are events.
	Waiting func(c *Call) any
	// IDHeader is the header that holds a request's id, besides X-Request-Id; empty: none.
	IDHeader string
	// Rates writes the headers that say where a key stands with its requests or its tokens a
	// minute, as what says; nil: OpenAI's.
	Rates func(h http.Header, what string, r *admission.Rate)
	// Stored returns how many bytes are kept for later requests; nil: nothing is.
	Stored func() int64
}

// Route is a path of an API, with one of Ask, Read and Answer.
type Route struct {
	Path   string
	Method string // empty: POST where a body is read, else GET
	Factor int64  // bytes that are made of a byte of the body, itself included; 0: no body is read
	List   string // the field that a body which is a list counts as; empty: a body is an object
	Open   bool   // it needs no key
	Admin  bool   // it needs a key with the right to ask about others
	Rules  bool   // it changes what others get: where keys are configured, it needs an admin's

	Ask    func(*Call) (*Ask, error)     // reads a request for text
	Read   func(*Call) (*Reading, error) // reads a request for what a model makes of texts
	Answer func(*Call) error             // answers. After an error with nothing written, the fault is the answer
}

// The factors of bodies, which a test measures.
const (
	ChatFactor       = 12
	CompletionFactor = 6
	TemplateFactor   = 12
	TokenizeFactor   = 12
	DetokenizeFactor = 8
	EmbeddingFactor  = 12
	RewardFactor     = 8

	MostFactor = max(ChatFactor, CompletionFactor, TemplateFactor, TokenizeFactor, DetokenizeFactor, EmbeddingFactor, RewardFactor)
)
