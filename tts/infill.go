package tts

import (
	"context"
	"slices"

	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Infills reports whether the model can fill in the middle of a text.
func (m *Model) Infills() bool { return m.Tokenizer.Infill().Known() }

// project is a repository's name where nobody gives one.
const project = "project"

// around prepares a text with a gap. Names of special tokens in it are plain text.
func (m *Model) around(ctx context.Context, p *Prompt, limit int) (*Prepared, error) {
	marks := m.Tokenizer.Infill()
	if !marks.Known() {
		return nil, ErrInfill
	}
	var ids []int32
	add := func(text string) error {
		more, err := m.encode(ctx, text, tokenizer.Options{}, limit-len(ids))
		ids = append(ids, more...)
		return err
	}
	var err error
	if !p.Bare {
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
