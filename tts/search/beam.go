package search

import (
	"iter"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
)

// beam is a candidate in the making: a sequence of the generator, the judge
// that follows it, and its text so far.
type beam struct {
	cand       *tts.Candidate
	seq        *batcher.Sequence
	judge      tts.Judge
	dec        *tts.Decoder
	shape      *shape // of text
	text       []byte
	step       []byte // bytes of the solution step that is being written
	stepTokens int    // of it
	logprobs   float64
	certainty  float64
	begun      time.Time // first token
	partial    *partial  // what reports say of it; nil: they are not wanted
	decodingRun
	place
}

// decodingRun says what a beam is generating.
type decodingRun struct {
	run     iter.Seq2[sampling.Token, error] // under way
	params  sampling.Params                  // of it
	limit   int                              // tokens at most, with those before the run
	granted int                              // tokens of the limit that the budget has granted so far
	paused  bool                             // it has used up its granted tokens without coming to an end
	whole   bool                             // it ends with the answer, else with the solution step
}

// place says how far a beam has come in the tree.
type place struct {
	node   int // its last in the tree
	shown  int // length of text up to there
	tokens int // generated up to there
}

// close gives back what a beam holds.
func (b *beam) close() {
	b.seq.Close()
	b.judge.Close()
}

// copyTo copies b for forks of its sequence and its judge.
func (b *beam) copyTo(seq *batcher.Sequence, judge tts.Judge) *beam {
	k, c := *b, *b.cand
	c.IDs, c.Tokens, c.StepScores, c.Confidences.Tokens = slices.Clone(c.IDs), slices.Clone(c.Tokens), slices.Clone(c.StepScores), slices.Clone(c.Confidences.Tokens)
	c.Critiques, c.Readings = slices.Clone(c.Critiques), c.Readings.Clone()
	k.cand, k.seq, k.judge, k.dec, k.shape, k.text, k.step = &c, seq, judge, b.dec.Clone(), b.shape.clone(), slices.Clone(b.text), nil
	return &k
}
