package tts

import (
	"context"
	"fmt"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// Request asks for N continuations of a prompt.
type Request struct {
	Prompt   Prompt
	N        int             // choices; 0 means 1
	Sampling sampling.Params // of every choice; the strategy sets Candidate and Constraint, and adds the model's own ends to Stop unless IgnoreEOS is set
	Stop     []string        // strings that end a choice and are cut from it
	KeepStop bool            // leave the string, or the token, that ends a choice in its text
	// Repetition ends choices that repeat themselves.
	Repetition Repetition
	Special    bool     // write special tokens out
	Marks      []string // special tokens that are written out by name all the same
	Echo       bool     // begin every choice with the prompt
	NoTokens   bool     // generate nothing: with Echo, the prompt and its log-probabilities are the answer
	Listing
	// Rules constrain the answers. Their Format excludes MinTokens, Allowed, Sampling.IgnoreEOS and answers
	// that continue a message.
	constrain.Rules
	// MaxLogprobs bounds the log-probabilities that the answer may list, alternatives included; 0: no bound.
	MaxLogprobs int
	// Calling reads the calls of tools in answers, which candidates of a search agree on as
	// on any other answer. nil: there are none.
	Calling *Calling
	// Sampled gets the tokens of each choice of a plain answer as they are sampled: one choice's in their
	// order, several choices' at once. It may be nil.
	Sampled func(choice int, id int32)
	// Opened gets a way to ask for the times of the prompt's sequence, at any time from then on;
	// nil: nobody wants them.
	Opened func(timing func() batcher.Timing)
	// Continued are the candidates that the choices are, one each; nil: those with the
	// numbers 0 to N-1, from their beginning. It excludes Echo and NoTokens.
	Continued []Continued
	// Delimiters end a choice with the first token that holds one of them.
	Delimiters []string
	// DRYBreakers are texts across which DRY counts no repetition; nil: llama.cpp's.
	DRYBreakers []string
	// Background makes the choices yield to other requests' as a search's candidates do.
	Background bool
}

// Listing says what a plain answer tells of tokens besides its text.
type Listing struct {
	// ScorePrompt tells of the prompt's tokens in PromptScores, with PromptTop alternatives of each.
	ScorePrompt bool
	PromptTop   int
	TokenIDs    bool // tell of sampled tokens in TokenIDs
}

// Choices returns N with its default.
func (r *Request) Choices() int { return max(r.N, 1) }

// TellOpened tells of the prompt's sequence.
func (r *Request) TellOpened(prompt *batcher.Sequence) {
	if r.Opened != nil {
		r.Opened(prompt.Timing)
	}
}

// PrepareFor makes the prompt ready for m and checks what depends on it, for
// candidates candidates that share it and generate at most generated tokens together.
func (r *Request) PrepareFor(ctx context.Context, m *Model, candidates, generated int) (*Prepared, error) {
	if err := r.checkFormat(); err != nil {
		return nil, err
	}
	p, err := m.PrepareRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := r.checkContinued(m, len(p.Tokens)); err != nil {
		return nil, err
	}
	if err := r.checkLogprobs(m, len(p.Tokens), candidates, generated); err != nil {
		return nil, err
	}
	return p, nil
}

// checkLogprobs checks how many log-probabilities the answer may list, for
// candidates candidates that share a prompt and generate at most generated tokens together.
func (r *Request) checkLogprobs(m *Model, prompt, candidates, generated int) error {
	if r.MaxLogprobs == 0 {
		return nil
	}
	if all := prompt * (1 + r.PromptTop); r.ScorePrompt && all > r.MaxLogprobs {
		return fmt.Errorf("%w: a prompt of %d tokens with %d alternatives each has more than the %d allowed; ask for fewer alternatives",
			ErrPromptLogprobs, prompt, r.PromptTop, r.MaxLogprobs)
	}
	if !r.Sampling.Logprobs {
		return nil
	}
	each := m.Context - prompt
	if r.Sampling.MaxTokens > 0 {
		each = min(each, r.Sampling.MaxTokens)
	}
	if r.NoTokens {
		each = 0
	}
	tokens := min(each*candidates, generated)
	if r.Echo {
		tokens += prompt * candidates
	}
	if all := tokens * (1 + r.Sampling.TopLogprobs); all > r.MaxLogprobs {
		return fmt.Errorf("%w: up to %d tokens with %d alternatives each are more than the %d allowed; ask for fewer tokens, choices or alternatives",
			ErrLogprobs, tokens, r.Sampling.TopLogprobs, r.MaxLogprobs)
	}
	return nil
}

// ParamsFor returns the parameters of every choice, with the model's own ends and
// what the request forbids. thinking: answers begin in a thought.
func (r *Request) ParamsFor(m *Model, thinking bool) sampling.Params {
	p := r.Sampling
	p.Constraint = r.Rules.New(wordsOf(m), r.Sampling.Stop, thinking)
	if !p.IgnoreEOS {
		p.Stop = sampling.NewTokenSet(p.Stop, m.Tokenizer.EOGs())
	}
	p.IgnoreEOS = false // the request's own ends count all the same
	if p.DRYMultiplier != 0 {
		p.DRYBreakers = m.breakers.of(r.DRYBreakers)
	}
	return p
}

// checkFormat refuses what a format does not go with.
func (r *Request) checkFormat() error {
	if r.Format == nil {
		return nil
	}
	for _, other := range []struct {
		name string
		bad  bool
	}{
		{"min_tokens", r.MinTokens > 0}, {"allowed_token_ids", r.Allowed != nil}, {"ignore_eos", r.Sampling.IgnoreEOS},
		{"continue_final_message", r.Prompt.Ending == ContinueFinalMessage && r.Prompt.Messages != nil},
	} {
		if other.bad {
			return fmt.Errorf("%w: %s", ErrFormat, other.name)
		}
	}
	return nil
}

// ChatStops returns the model's texts that end an answer.
func (r *Request) ChatStops(m *Model) []string {
	if r.Prompt.Messages == nil {
		return nil
	}
	return m.Stops
}

// Continued is a candidate of another machine's search, which a choice goes on with.
type Continued struct {
	Candidate int     // its number in the randomness
	Begun     []int32 // its tokens so far
}

// continued opens the choices of req as candidates that have been begun.
func (req *Request) continued(seqs []*batcher.Sequence, params []sampling.Params) {
	for i := range req.Continued {
		params[i].Candidate = req.Continued[i].Candidate
		seqs[i].Adopt(req.Continued[i].Begun...)
	}
}

// checkContinued checks that prompts with their candidates' tokens fit.
func (req *Request) checkContinued(m *Model, prompt int) error {
	for i := range req.Continued {
		if n := prompt + len(req.Continued[i].Begun); n >= m.Context {
			return &ContextError{Limit: m.Context, Prompt: n, Part: PartPrompt}
		}
	}
	return nil
}

// PrepareRequest makes a request's prompt ready and checks that it fits the
// context. Errors: ErrEmpty, ErrToken, ErrTemplate, *ContextError, ctx's own.
func (m *Model) PrepareRequest(ctx context.Context, req *Request) (*Prepared, error) {
	out, err := preparePrompt(ctx, m, &req.Prompt, req.Sampling.MaxTokens, m.Context)
	if err != nil {
		return nil, err
	}
	room := m.Context
	if !req.NoTokens {
		room--
	}
	switch n := len(out.Tokens); {
	case n == 0:
		return nil, ErrEmpty
	case n > room:
		return nil, &ContextError{Limit: m.Context, Prompt: n, Part: req.Prompt.part()}
	}
	return out, nil
}
