package tts

import (
	"context"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Prepare makes a prompt ready, as it would be for a request that bounds its
// answer to so many tokens; 0: to what is left of the context.
func (m *Model) Prepare(ctx context.Context, p *Prompt, maxTokens int) (*Prepared, error) {
	return m.prepare(ctx, p, maxTokens, math.MaxInt)
}

// Encode turns a prompt into tokens.
func (m *Model) Encode(ctx context.Context, p *Prompt) ([]int32, error) {
	out, err := m.Prepare(ctx, p, 0)
	if err != nil {
		return nil, err
	}
	return out.Tokens, nil
}

// prepare is Prepare, but refuses a text that must have more than limit tokens
// before the work of encoding it.
func (m *Model) prepare(ctx context.Context, p *Prompt, maxTokens, limit int) (*Prepared, error) {
	switch {
	case p.Messages != nil:
		return m.fit(ctx, p, maxTokens, limit)
	case p.Tokens != nil:
		for i, id := range p.Tokens {
			if id < 0 || int(id) >= m.Vocab {
				return nil, fmt.Errorf("%w: token %d is %d, the vocabulary has %d", ErrToken, i, id, m.Vocab)
			}
		}
		return &Prepared{Tokens: p.Tokens, Thinking: m.thinks(p.Tokens)}, nil
	}
	if p.Infill != nil {
		return m.around(ctx, p, limit)
	}
	ids, err := m.encode(ctx, p.Text, tokenizer.Options{AddSpecial: !p.Bare, ParseSpecial: !p.Literal}, limit)
	if err != nil {
		return nil, err
	}
	return &Prepared{Tokens: ids, Text: p.Text, Thinking: m.thinks(ids)}, nil
}
