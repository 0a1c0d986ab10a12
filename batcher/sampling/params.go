package sampling

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Params says how one Generate call samples and when it ends. The zero value
// is greedy and runs to the context limit.
//
// The stages run in this order, each on what the one before left, which is
// vLLM's: Constraint, LogitBias, RepetitionPenalty, FrequencyPenalty,
// PresencePenalty, DRY, Temperature, MinP, TopNSigma, TopK, TypicalP, TopP, XTC, draw.
type Params struct {
	MaxTokens         int               // tokens to generate at most; 0: up to the context limit
	Temperature       float32           // 0: greedy, ties go to the lowest id
	TopK              int               // keep the k most likely; 0: off
	TopP              float32           // keep the fewest whose probability reaches p; 1 or 0: off
	MinP              float32           // keep those at least MinP times as likely as the likeliest; 0: off
	TypicalP          float32           // keep the fewest nearest to the expected surprise whose probability reaches p; 1 or 0: off
	RepetitionPenalty float32           // divides (multiplies, below zero) logits of tokens seen in prompt and completion; 1 or 0: off
	RepetitionWindow  int               // of the latest tokens, that the penalty looks at; 0: all
	PresencePenalty   float32           // subtracted once from logits of tokens seen in the completion
	FrequencyPenalty  float32           // subtracted for each occurrence in the completion
	DRYMultiplier     float32           // of the penalty for tokens that continue a repetition; 0: off
	DRYBase           float32           // by which each further token multiplies it; 0: 1.75
	DRYAllowedLength  int               // tokens of a repetition from which on it counts; 0: 2
	DRYWindow         int               // of the latest tokens, that it looks at; 0: all
	DRYBreakers       *Breakers         // across which nothing is a repetition; nil: there are none
	TopNSigma         float32           // keep logits at most that many standard deviations below the largest; 0: off
	XTCProbability    float32           // of leaving out all but the least likely of the tokens that reach XTCThreshold; 0: off
	XTCThreshold      float32           // a probability among what the other stages kept; above 0.5: off
	LogitBias         map[int32]float32 // added to logits; -Inf forbids
	Constraint        Constraint        // of the completion: where it begins, or of a Draw where its token stands; nil: every token is allowed
	Seed              uint64
	Candidate         int      // index among the candidates of one request; mixed into the randomness
	Stop              TokenSet // that end generation; the ending token is delivered, with Finish set
	IgnoreEOS         bool     // generate to MaxTokens whatever is sampled (benchmarks)
	Logprobs          bool     // fill Token.Logprob and Token.Certainty
	TopLogprobs       int      // alternatives in Token.Top, most likely first; implies Logprobs
	FlushEvery        int      // wake the reader for this many tokens at once, or the last ones: waking takes time from the steps; 0: for each
}

// Reports reports whether tokens come with log-probabilities.
func (p *Params) Reports() bool { return p.Logprobs || p.TopLogprobs > 0 }

// LooksBack reports whether sampling depends on the tokens so far.
func (p *Params) LooksBack() bool { return p.penalises() }

// forbids reports whether some tokens may not be sampled at all.
func (p *Params) forbids() bool {
	if p.Constraint != nil {
		return true
	}
	for _, bias := range p.LogitBias {
		if bias == negInf {
			return true
		}
	}
	return false
}

func (p *Params) penalises() bool {
	return p.repeats() || p.dries() || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

func (p *Params) repeats() bool { return p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1 }

// truncates reports whether some tokens are left out for being too unlikely.
func (p *Params) truncates() bool {
	return p.MinP > 0 || p.TopNSigma > 0 || p.TopK > 0 || on(p.TypicalP) || on(p.TopP)
}

// on reports whether a probability mass is one to cut at.
func on(p float32) bool { return p > 0 && p < 1 }

// Forced returns the token of a vocabulary that comes next whatever the model says, false if
// there is none such: it is sampled.
func (p *Params) Forced(vocab int) (id int32, ok bool) {
	c, ok := p.Constraint.(Preparer)
	if !ok {
		return 0, false
	}
	id, ok = c.Forced()
	if !ok || id < 0 || int(id) >= vocab || math.IsInf(float64(p.LogitBias[id]), -1) {
		return 0, false
	}
	return id, true
}

// ErrSample says that no token can be sampled: the logits are not numbers, or a Constraint allows none.
var ErrSample = errors.New("batcher: nothing to sample")

// ErrForbidden says that parameters leave no token to go on with. It is an ErrSample.
var ErrForbidden = fmt.Errorf("%w: no token is allowed", ErrSample)

// ErrParams says that a Params value cannot be used.
var ErrParams = errors.New("batcher: bad sampling parameters")

// maxTop bounds Params.TopLogprobs; OpenAI allows 20, completions of old 5.
const maxTop = 128

// Validate reports every field that is out of range, wrapped in ErrParams.
func (p *Params) Validate() error {
	var faults []error
	for i := range Fields {
		if err := Fields[i].validate(p); err != nil {
			faults = append(faults, err)
		}
	}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(p.MaxTokens < 0, "MaxTokens %d is negative", p.MaxTokens)
	fault(p.FlushEvery < 0, "FlushEvery %d is negative", p.FlushEvery)
	fault(!p.Stop.ordered(), "Stop was not made by NewTokenSet")
	fault(p.TopLogprobs < 0 || p.TopLogprobs > maxTop, "TopLogprobs %d is not in [0, %d]", p.TopLogprobs, maxTop)
	for _, id := range slices.Sorted(maps.Keys(p.LogitBias)) {
		bias := p.LogitBias[id]
		fault(id < 0 || math.IsNaN(float64(bias)), "LogitBias %v of token %d", bias, id)
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrParams, errors.Join(faults...))
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
	// Certainty, filled with Logprob, is the distance of that distribution P
	// from the uniform one U: KL(U‖P) in nats, over the tokens with a finite logit.
	Certainty float32
	Rank      int // how many tokens are at least as likely, itself included; filled with Logprob
	Top       []TokenLogprob
	// Reading, filled with Logprob, has the output of the engine's probe for the state that the
	// token was sampled from; nil: there is no probe.
	Reading []float32
	Finish  Finish // set on the last token
}

// TokenLogprob is a token with its log-probability.
type TokenLogprob struct {
	ID      int32
	Logprob float32
}
