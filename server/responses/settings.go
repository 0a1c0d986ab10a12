package responses

import (
	"encoding/json"
)

// settings are the part of its request that a response repeats, and that its shape needs.
type settings struct {
	Instructions string
	Previous     string // id of the response that it follows
	Store        bool
	Metadata     json.RawMessage
	Tools        []any
	ToolChoice   json.RawMessage
	Parallel     bool
	Effort       string
	MaxTokens    int
	MaxToolCalls int
	Truncation   string
	User         string
	Text         any
	Earlier      int // bytes of the items of the responses that it follows

	items     []*item      // of the conversation
	custom    []string     // names of the custom tools
	spaced    []spacedName // functions of namespaces
	leftOut   bool         // tools of the server's own are
	encrypted bool         // thoughts are handed out for the client to keep
}

// spacedName is a function of a namespace.
type spacedName struct{ seen, namespace, name string } // seen by models

func newSettings() *settings {
	return &settings{Store: true, Parallel: true, Truncation: "disabled", Text: textSettings{Format: &textFormat{Type: "text"}},
		Tools: []any{}, ToolChoice: json.RawMessage(`"auto"`), Metadata: json.RawMessage("{}")}
}

// textSettings are the part of its request's text settings that a response repeats.
type textSettings struct {
	Format    *textFormat `json:"format"`
	Verbosity string      `json:"verbosity,omitempty"`
}

type textFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}
