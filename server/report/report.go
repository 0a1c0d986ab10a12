// Package report has the parts of answers that several APIs write: the course of a search, tokens, times, and
// what was left out of the prompt.
package report

import (
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// ReadUsage is the usage of a request whose tokens are all read.
type ReadUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// Truncation reports what the model did not read of a conversation.
type Truncation struct {
	DroppedMessages int `json:"dropped_messages"`
}

// NewTruncation returns nil where nothing was left out.
func NewTruncation(dropped int) *Truncation {
	if dropped == 0 {
		return nil
	}
	return &Truncation{dropped}
}

// WriteTruncation adds the field that tells of messages that were left out.
func WriteTruncation(p *jsonwrite.Reply, prepared *tts.Prepared) {
	if t := NewTruncation(prepared.Dropped); t != nil {
		p.Raw(`,"truncation":`)
		p.Value(t)
	}
}
