package engines

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// LoadDraft loads a model that can draft for target.
func LoadDraft(d config.Model, h config.Hexagon, pool *pool.Pool, target *models.Bundle) (*models.Bundle, error) {
	bundle, err := LoadBundle(d, h, models.LoadOptions{Pool: pool})
	if err == nil {
		if err = drafts(bundle, target); err == nil {
			return bundle, nil
		}
		err = errors.Join(err, bundle.Close())
	}
	return nil, draftError(d, target, err)
}

// drafts says why a model cannot draft for target; nil: it can.
func drafts(draft, target *models.Bundle) error {
	if draft.Task() != models.TaskGenerate {
		return errors.New("a reward model cannot draft tokens")
	}
	for _, b := range []*models.Bundle{draft, target} {
		if c := b.Model.Config(); c.State > 0 {
			return fmt.Errorf("architecture %s has recurrent layers, which cannot take guesses back", c.Arch)
		}
	}
	return target.Tokenizer.Same(draft.Tokenizer)
}

// speculates says why a model cannot speculate as it is asked to by name; nil: it can,
// or auto leaves it off.
func speculates(how batcher.Speculation, b *models.Bundle) error {
	if c := b.Model.Config(); c.State > 0 && how != batcher.SpeculateAuto && how != batcher.SpeculateOff && how != "" {
		return fmt.Errorf("engine.speculation is %s: architecture %s cannot speculate, for its recurrent layers cannot take guesses back; use auto or off", how, c.Arch)
	}
	return nil
}

func draftError(d config.Model, target *models.Bundle, err error) error {
	return fmt.Errorf("draft model %s for %s: %w", d.APIName(), target.Name, err)
}

// Drafters returns the drafters of an engine. draft, which may be nil, has the cache kv of
// its own.
func Drafters(draft *models.Bundle, cache *kv.Cache, pool *pool.Pool) []batcher.Drafter {
	list := []batcher.Drafter{batcher.NewLookup()}
	if draft != nil {
		list = append(list, batcher.NewModelDrafter(draft.Model, cache, pool))
	}
	return list
}
