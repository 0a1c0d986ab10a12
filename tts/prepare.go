package tts

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Prepare makes a prompt ready, as it would be for a request that bounds its
// answer to maxTokens tokens; 0: to what is left of the context.
func (m *Model) Prepare(ctx context.Context, p *Prompt, maxTokens int) (*Prepared, error) {
	return preparePrompt(ctx, m, p, maxTokens, math.MaxInt)
}

// Encode turns a prompt into tokens.
func (m *Model) Encode(ctx context.Context, p *Prompt) ([]int32, error) {
	out, err := m.Prepare(ctx, p, 0)
	if err != nil {
		return nil, err
	}
	return out.Tokens, nil
}

// preparePrompt is Prepare, but refuses a text that must have more than limit tokens
// before the work of encoding it.
func preparePrompt(ctx context.Context, m *Model, p *Prompt, maxTokens, limit int) (*Prepared, error) {
	switch {
	case p.Messages != nil:
		return fitContext(ctx, m, p, maxTokens, limit)
	case p.Tokens != nil:
		for i, id := range p.Tokens {
			if id < 0 || int(id) >= m.Vocab {
				return nil, fmt.Errorf("%w: token %d is %d, the vocabulary has %d", ErrToken, i, id, m.Vocab)
			}
		}
		return &Prepared{Tokens: p.Tokens, Thinking: EndsInThought(m, p.Tokens)}, nil
	}
	if p.Infill != nil {
		return prepareInfill(ctx, m, p, limit)
	}
	ids, err := encodeText(ctx, m, p.Text, tokenizer.Options{AddSpecial: !p.NoBOS, ParseSpecial: !p.NoSpecialTokens}, limit)
	if err != nil {
		return nil, err
	}
	return &Prepared{Tokens: ids, Text: p.Text, Thinking: EndsInThought(m, ids)}, nil
}

// Infills reports whether the model can fill in the middle of a text.
func (m *Model) Infills() bool { return m.Tokenizer.Infill().Known() }

// project is a repository's name where nobody gives one.
const project = "project"

// prepareInfill prepares a text with a gap. Names of special tokens in it are plain text.
func prepareInfill(ctx context.Context, m *Model, p *Prompt, limit int) (*Prepared, error) {
	marks := m.Tokenizer.Infill()
	if !marks.Known() {
		return nil, ErrInfill
	}
	var ids []int32
	add := func(text string) error {
		more, err := encodeText(ctx, m, text, tokenizer.Options{}, limit-len(ids))
		ids = append(ids, more...)
		return err
	}
	var err error
	if !p.NoBOS {
		ids = m.Tokenizer.Encode(ids, "", tokenizer.Options{AddSpecial: true})
		if end, ok := m.Tokenizer.EOS(); ok && len(ids) > 1 && ids[len(ids)-1] == end {
			ids = ids[:len(ids)-1]
		}
	}
	files := p.Infill.Files
	named := marks.File >= 0
	if len(files) > 0 && marks.Repository >= 0 {
		ids = append(ids, marks.Repository)
		err = add(project + "\n")
	}
	for _, f := range files {
		if err == nil && named {
			ids = append(ids, marks.File)
			err = add(f.Name + "\n")
		}
		if err == nil {
			err = add(f.Text + "\n")
		}
	}
	parts := []struct {
		mark int32
		text string
	}{{marks.Prefix, p.Text}, {marks.Suffix, p.Infill.Suffix}, {marks.Middle, ""}}
	for _, part := range parts {
		if err == nil {
			ids = append(ids, part.mark)
			err = add(part.text)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Prepared{Tokens: slices.Clip(ids)}, nil
}
