package tts

import (
	"context"
	"iter"
)

// Strategy answers a request. Implementations are small values that hold the
// model and their plan; Run may be called many times and at once.
//
// The sequence ends after its first error. Breaking out of it, or ctx's end,
// closes every sequence the run has opened.
type Strategy interface {
	Run(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Scorer sets the Score of candidate answers to one request. All candidates
// come in one call, so that a verifier scores them in one batch.
type Scorer interface {
	Score(ctx context.Context, req *Request, cands []*Candidate) error
}

// Candidate is one of the answers, whole or partial, that a strategy chooses
// among.
type Candidate struct {
	Index  int     // position among the request's candidates; part of the randomness
	Text   string  // as it would be delivered
	Tokens []Token // with log-probabilities
	Finish Finish  // empty while partial
	Score  float32 // set by a Scorer; higher is better
}
