package anthropic

import "github.com/lutra-lm/lutra/server/jsonread"

// Bounds on one request, besides those in jsonread.
const (
	maxMessages = 2048
	maxBlocks   = 256 // of a message
	maxTools    = 128
	maxStops    = 16
	maxStopLen  = 1024    // bytes
	maxCalls    = 1 << 20 // bytes of a request's tools, and of its messages' calls
)

// reader reads a request's fields, with a method for each or for a few that belong together.
type reader struct{ *jsonread.Fields }

// fieldThread asks that the server keep a conversation.
const fieldThread = "thread"
