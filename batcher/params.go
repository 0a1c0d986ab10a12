package batcher

// Params says how one Generate call samples and when it ends.
type Params struct {
	MaxTokens         int     // tokens to generate at most; 0: up to the context limit
	Temperature       float32 // 0: greedy
	TopK              int     // 0: off
	TopP              float32 // 1 or 0: off
	MinP              float32 // 0: off
	TypicalP          float32 // 1 or 0: off
	RepetitionPenalty float32 // 1 or 0: off; over prompt and completion
	PresencePenalty   float32 // OpenAI's, over the completion
	FrequencyPenalty  float32
	LogitBias         map[int32]float32
	Seed              uint64
	Candidate         int     // index among the candidates of one request; mixed into the randomness
	Stop              []int32 // token ids that end generation; the ending token is delivered, with Finish set
	IgnoreEOS         bool    // generate to MaxTokens whatever is sampled (benchmarks)
	Logprobs          bool    // fill Token.Logprob
	TopLogprobs       int     // alternatives in Token.Top
}

// Finish says why a generation ended.
type Finish uint8

// The reasons.
const (
	Unfinished   Finish = iota
	FinishStop          // a token of Params.Stop
	FinishLength        // MaxTokens, or the context is full
)

// Token is one sampled token.
type Token struct {
	ID      int32
	Logprob float32 // natural log of the probability under the unmodified logits (temperature 1)
	Top     []TokenLogprob
	Finish  Finish // set on the last token
}

// TokenLogprob is a token with its log-probability.
type TokenLogprob struct {
	ID      int32
	Logprob float32
}
