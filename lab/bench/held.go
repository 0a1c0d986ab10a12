package bench

import (
	"context"
	"fmt"
	"os"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// maxSchema bounds the bytes of a schema's file.
const maxSchema = 1 << 20

// heldTo returns the constraint of tests whose answers are held to a JSON Schema, nil
// without a schema. Its tokens are another model's if the options name a vocabulary.
func (o *EngineOptions) heldTo(ctx context.Context, bundle *models.Bundle) (sampling.Constraint, error) {
	if o.Schema == "" {
		return nil, nil
	}
	info, err := os.Stat(o.Schema)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSchema {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", o.Schema, info.Size(), maxSchema)
	}
	text, err := os.ReadFile(o.Schema)
	if err != nil {
		return nil, err
	}
	b := *bundle
	if o.Vocabulary != "" {
		if b.Tokenizer, err = o.vocabulary(ctx); err != nil {
			return nil, err
		}
		if size, most := b.Tokenizer.Size(), b.Model.Config().Vocab; size > most {
			return nil, fmt.Errorf("%s has %d tokens, the model %d", o.Vocabulary, size, most)
		}
	}
	m := tts.NewModel(&b, nil)
	format, err := m.Formats.Format(ctx, constrain.Schema, string(text))
	if err != nil {
		return nil, err
	}
	start, ok := m.HeldTo(format).(sampling.Preparer)
	if !ok {
		return nil, fmt.Errorf("%s holds answers to nothing", o.Schema)
	}
	a := &answers{start: start, ends: sampling.NewTokenSet(b.Tokenizer.EOGs())}
	return oneAfterAnother{start, a}, nil
}

func (o *EngineOptions) vocabulary(ctx context.Context) (*tokenizer.Tokenizer, error) {
	mc := config.ModelNamed(o.Vocabulary)
	if err := mc.Get(ctx, o.Get); err != nil {
		return nil, err
	}
	f, err := mc.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tokenizer.New(f.Metadata)
}

// answers is where answers begin, and the tokens that end one.
type answers struct {
	start sampling.Preparer
	ends  sampling.TokenSet
}

// oneAfterAnother is a constraint of answers in a row, so that a test decodes as many
// tokens as it is meant to.
type oneAfterAnother struct {
	sampling.Preparer
	*answers
}

func (o oneAfterAnother) Next(id int32) sampling.Constraint {
	if o.ends.Has(id) {
		return oneAfterAnother{o.start, o.answers}
	}
	return oneAfterAnother{o.Preparer.Next(id).(sampling.Preparer), o.answers}
}
