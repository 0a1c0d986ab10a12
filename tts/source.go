package tts

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// Source goes on with candidates on other machines, which compute the bits that this
// one would. It may be used by many searches at once.
type Source interface {
	// Share returns the number of jobs of w, counted from the end, to be done elsewhere.
	Share(w *Work) int
	// Generate goes on with the jobs of w and calls done once for each, from any goroutine, with the
	// machines' tokens: all that are wanted, or fewer if they fail. It returns soon after ctx has ended,
	// after the last call.
	Generate(ctx context.Context, w *Work, done func(job int, runs []Run))
	// Checks reports whether a run of a machine is to be computed again.
	Checks(from string) bool
	// Checked says that some of it was, and was right, or what was wrong with it: the
	// machine is given nothing more for a while.
	Checked(from string, wrong error)
}

// Work is candidates to go on with that share a prompt.
type Work struct {
	Prompt     []int32
	Params     sampling.Params   // of all, but for Candidate and MaxTokens; Stop holds what ends an answer
	Delimiters []string          // that end a job with the token that holds one; none: it goes on to its answer's end
	Until      sampling.TokenSet // Params.Stop, and the tokens that hold a delimiter
	Stops      []string          // texts at which a machine may end a job
	Breakers   []string          // Request.DRYBreakers
	Salt       string            // batcher.Salt: only work of the same salt shares what is computed of prompts
	Limit      int               // tokens that prompt and completion may have together
	Pace       time.Duration     // for a token of each job if this machine did them all; 0: not known
	Jobs       []Job
}

// Job is one candidate of a Work.
type Job struct {
	Candidate int     // as in sampling.Params
	Begun     []int32 // its tokens so far, after the prompt
	MaxTokens int     // to generate at most, at least 1
}

// Run is tokens that one machine has generated for a job, one after the other. Their
// Finish is for the search to find out.
type Run struct {
	From   string // the machine, as the Source calls it
	Tokens []sampling.Token
}

// Ends reports whether a job ends with a token, its n-th.
func (w *Work) Ends(job *Job, id int32, n int) bool {
	return w.Finish(job, id, n) != sampling.Unfinished
}

// Finish returns how the engine would mark a token, the n-th of a job.
func (w *Work) Finish(job *Job, id int32, n int) sampling.Finish {
	switch {
	case w.Until.Has(id):
		return sampling.FinishStop
	case n >= job.MaxTokens || len(w.Prompt)+len(job.Begun)+n >= w.Limit:
		return sampling.FinishLength
	}
	return sampling.Unfinished
}

// Check reports tokens that no machine can have generated.
func (w *Work) Check(job *Job, n int, tokens []sampling.Token, vocab int) error {
	for i, t := range tokens {
		switch {
		case t.ID < 0 || int(t.ID) >= vocab:
			return fmt.Errorf("tts: token id %d is outside the vocabulary of %d", t.ID, vocab)
		case t.Logprob > roundedUp || t.Logprob != t.Logprob || math.IsNaN(float64(t.Certainty)) || math.IsInf(float64(t.Certainty), 0):
			return fmt.Errorf("tts: the log-probability %v and the certainty %v belong to no token", t.Logprob, t.Certainty)
		case w.Ends(job, t.ID, n+i+1) && i < len(tokens)-1:
			return fmt.Errorf("tts: %d tokens go on behind the end", len(tokens)-1-i)
		}
	}
	return nil
}

// roundedUp is more than rounding adds to the log-probability of what is certain.
const roundedUp = 1e-3
