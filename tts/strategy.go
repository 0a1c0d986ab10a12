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
	Run(ctx context.Context, req *Request) iter.Seq2[Event, error]
	// Prepare makes the prompt of a request ready, and refuses what Run refuses before
	// it computes anything.
	Prepare(ctx context.Context, req *Request) (*Prepared, error)
}
