package anthropic

// Bounds on one request, besides those in jsonread.
const (
	maxMessages = 2048
	maxBlocks   = 256 // of a message
	maxTools    = 128
	maxStops    = 16
	maxStopLen  = 1024    // bytes
	maxCalls    = 1 << 20 // bytes of a request's tools, and of its messages' calls
)

// fieldThread asks that the server keep a conversation.
const fieldThread = "thread"
