package tts

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
)

// Single is the plain strategy: one sequence a choice. The prompt is computed
// once and forked; the choices are decoded together and their events come
// interleaved.
type Single struct {
	Model *Model
}

// Run implements Strategy.
func (s Single) Run(ctx context.Context, req *Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := s.run(ctx, req, yield); err != nil {
			yield(Event{}, err)
		}
	}
}

// Prepare implements Strategy.
func (s Single) Prepare(ctx context.Context, req *Request) (*Prepared, error) {
	return req.PrepareFor(ctx, s.Model, req.Choices(), math.MaxInt)
}

// run opens the prompt, echoes it, and generates. It returns the error that is still to be
// yielded: none when the reader has left or has had it.
func (s Single) run(ctx context.Context, req *Request, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prepared, err := s.Prepare(ctx, req)
	if err != nil {
		return err
	}
	open := s.Model.Engine.Open
	if req.Background {
		open = s.Model.Engine.OpenBackground
	}
	root, err := open(ctx, prepared.Tokens)
	if err != nil {
		return err
	}
	defer root.Close()
	req.TellOpened(root)
	if !yield(prepared.Opening(), nil) {
		return nil
	}
	if goes, err := s.beforehand(ctx, root, prepared, req, yield); !goes {
		return err
	}
	if req.NoTokens {
		for i := range req.Choices() {
			if !yield(Event{Choice: i, What: End{Finish: FinishLength}}, nil) {
				return nil
			}
		}
		return nil
	}
	choices, err := s.choices(ctx, cancel, root, prepared, req)
	if err != nil {
		return err
	}
	counted := false
	for e, err := range Interleave(ctx, choices...) {
		if !counted && err == nil { // the prompt has been computed by now
			counted = true
			if !yield(Event{More: true, What: Usage{Cached: root.CachedPrompt()}}, nil) {
				return nil
			}
		}
		if !yield(e, err) || err != nil {
			return nil
		}
	}
	return nil
}

// choices starts the generation of all choices, which are forks of root. cancel ends all of
// them when the first has ended.
func (s Single) choices(ctx context.Context, cancel func(), root *batcher.Sequence, prepared *Prepared, req *Request) ([]func(context.Context) iter.Seq2[Event, error], error) {
	n := req.Choices()
	seqs := []*batcher.Sequence{root}
	if n > 1 {
		var err error
		if seqs, err = root.Fork(ctx, n); err != nil {
			return nil, err
		}
		root.Close()
	}
	params := slices.Repeat([]sampling.Params{req.ParamsFor(s.Model, prepared.Thinking)}, n)
	for i := range params {
		params[i].Candidate = i
		if len(req.Delimiters) > 0 {
			params[i].Stop = sampling.NewTokenSet(params[i].Stop, DelimitersOf(s.Model, req.Delimiters))
		}
	}
	req.continued(seqs, params)
	dec := NewDecoder(s.Model, req)
	sources := make([]func(context.Context) iter.Seq2[Event, error], n)
	for i, run := range batcher.GenerateAll(ctx, seqs, params) {
		sources[i] = func(inner context.Context) iter.Seq2[Event, error] {
			context.AfterFunc(inner, cancel) // the first to end ends what was begun with it
			return s.choice(req, run, root, seqs[i], i, dec.Clone())
		}
	}
	return sources, nil
}

// choice reads what one sequence, which is root or a fork of it, generates.
func (s Single) choice(req *Request, run iter.Seq2[sampling.Token, error], root, seq *batcher.Sequence, i int, dec *Decoder) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer seq.Close()
		for tok, err := range run {
			if err != nil {
				yield(Event{}, err)
				return
			}
			if req.Sampled != nil {
				req.Sampled(i, tok.ID)
			}
			if req.TokenIDs && !yield(Event{Choice: i, More: true, What: TokenIDs{tok.ID}}, nil) {
				return
			}
			text, end := dec.Push(tok)
			if !yield(Event{Choice: i, More: text.Last || seq.Unread() > 0, What: text}, nil) {
				return
			}
			if text.Last {
				end.Timing = TimingOf(root.Timing(), seq.Timing())
				yield(Event{Choice: i, What: end}, nil)
				return
			}
		}
	}
}

// beforehand yields what is said of the prompt: its log-probabilities, and its text as every choice begins with it. It
// reports whether the reader is still there.
func (s Single) beforehand(ctx context.Context, root *batcher.Sequence, prepared *Prepared, req *Request, yield func(Event, error) bool) (goes bool, err error) {
	listed := req.Echo && req.Sampling.Logprobs
	var tokens []Token
	if req.ScorePrompt || listed {
		top := req.PromptTop
		if listed {
			top = max(top, req.Sampling.TopLogprobs)
		}
		if tokens, err = s.scores(ctx, root, prepared.Tokens, top); err != nil {
			return false, err
		}
	}
	if req.ScorePrompt && !yield(Event{More: true, What: PromptScores(topped(tokens, req.PromptTop))}, nil) {
		return false, nil
	}
	if !req.Echo {
		return true, nil
	}
	echo := Text{Text: prepared.Text, Last: req.NoTokens}
	if echo.Text == "" {
		echo.Text = s.Model.Spell(prepared.Tokens)
	}
	if listed {
		echo.Tokens = topped(tokens, req.Sampling.TopLogprobs)
		first := &echo.Tokens[0]
		first.Hidden = !strings.HasPrefix(echo.Text, string(first.Bytes)) && s.Model.Hidden(first.ID) // a BOS that was added
	}
	for i := range req.Choices() {
		if !yield(Event{Choice: i, More: true, What: echo}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// scores returns the tokens of a prompt, whose text has their names, with their log-probabilities.
func (s Single) scores(ctx context.Context, seq *batcher.Sequence, prompt []int32, top int) ([]Token, error) {
	scored, err := seq.PromptLogprobs(ctx, top)
	if err != nil {
		return nil, err
	}
	out := make([]Token, 1, len(prompt))
	out[0] = Token{ID: prompt[0], Bytes: s.Model.Bytes(prompt[0])}
	for _, t := range scored {
		token := tokenOf(s.Model, t)
		token.Hidden = false
		out = append(out, token)
	}
	return out, nil
}

// topped returns tokens with so many alternatives at most.
func topped(tokens []Token, top int) []Token {
	out := slices.Clone(tokens)
	for i := range out {
		out[i].Top = out[i].Top[:min(len(out[i].Top), top)]
	}
	return out
}
