package fields

// Bounds on one request, besides those in server.Options and jsonread. docs/api.md lists
// them with every field, and a test posts what it says. Everything else is bounded by
// the size of the body.
const (
	MaxMessages     = 2048     // as OpenAI
	MaxParts        = 256      // of a message's content
	MaxKwargs       = 16 << 10 // bytes of chat_template_kwargs
	MaxTools        = 128      // of a request, and calls of a message
	MaxFunctions    = 1 << 20  // bytes of the tools of a request, and of all its messages' calls
	MaxStops        = 16       // stop strings; OpenAI has 4
	MaxStopLen      = 1024     // bytes of one
	MaxBreakers     = 32       // texts across which DRY counts no repetition
	MaxStopTokens   = 1024
	MaxTopLogprobs  = 20   // as OpenAI
	MaxLogitBias    = 1024 // tokens
	MaxBadWords     = 256
	MaxBadWordLen   = 256     // bytes
	MaxAllowed      = 1 << 16 // entries of allowed_token_ids
	MaxLogprobs     = 1 << 20 // of an answer: tokens times one and the alternatives of each
	MaxDetokenize   = 1 << 18
	MaxIncludes     = 8
	MaxCandidate    = 1 << 20 // number of a candidate
	MaxDelimiters   = 8       // as of a search's solution steps
	MaxDelimiterLen = 64      // bytes
	MaxInputs       = 2048    // texts to embed or to score, as OpenAI

	MaxMetadata      = 16 // entries; these are OpenAI's, but values have 512
	MaxMetadataName  = 64
	MaxMetadataValue = 2048 // a written search fits
)
