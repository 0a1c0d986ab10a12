package server

// Bounds on what one request may hold, beside those in Options. docs/api.md
// lists them with every field, and a test posts what it says. What no bound is
// named for here is bounded by the size of the body.
const (
	maxMessages    = 2048     // as OpenAI
	maxParts       = 256      // of a message's content
	maxKwargs      = 16 << 10 // bytes of chat_template_kwargs
	maxTools       = 128      // of a request, and calls of a message
	maxFunctions   = 1 << 20  // bytes of the tools of a request, and of all its messages' calls
	maxStops       = 16       // stop strings; OpenAI has 4
	maxStopLen     = 1024     // bytes of one
	maxStopTokens  = 1024
	maxTopLogprobs = 20   // as OpenAI
	maxLogitBias   = 1024 // tokens
	maxBadWords    = 256
	maxBadWordLen  = 256     // bytes
	maxAllowed     = 1 << 16 // entries of allowed_token_ids
	maxLogprobs    = 1 << 20 // of an answer: tokens times one and the alternatives of each
	maxDetokenize  = 1 << 18
	maxIncludes    = 8

	maxMetadata      = 16 // entries; these are OpenAI's, but values have 512
	maxMetadataName  = 64
	maxMetadataValue = 2048 // a written search fits
)
