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
	if !takesBack(target) {
		return errors.New("its recurrent states lie on a device, where they cannot take guesses back")
	}
	return target.Tokenizer.Same(draft.Tokenizer)
}

// speculates says why a model cannot speculate as it is asked to by name; nil: it can,
// or auto leaves it off.
func speculates(how batcher.Speculation, b *models.Bundle) error {
	if !takesBack(b) && how != batcher.SpeculateAuto && how != batcher.SpeculateOff && how != "" {
		return fmt.Errorf("engine.speculation is %s: the model's recurrent states lie on a device, where they cannot take guesses back; use auto or off", how)
	}
	return nil
}

// takesBack tells whether a model can undo guesses.
func takesBack(b *models.Bundle) bool {
	c := b.Model.Config()
	return c.State == 0 || c.GuessBytes > 0
}

func draftError(d config.Model, target *models.Bundle, err error) error {
	return fmt.Errorf("draft model %s for %s: %w", d.APIName(), target.Name, err)
}

// Drafters returns the drafters of a model's engine. Each model that drafts has a cache of its own, nil without it:
// draft, and the predictor of b.
func Drafters(b, draft *models.Bundle, drafting, predicting *kv.Cache, pool *pool.Pool) []batcher.Drafter {
	list := []batcher.Drafter{batcher.NewLookup()}
	if predicting != nil {
		list = append(list, batcher.NewMTPDrafter(b.Predictor, predicting, pool))
	}
	if drafting != nil {
		list = append(list, batcher.NewModelDrafter(draft.Model, drafting, pool))
	}
	return list
}

// PredictorKV makes the cache of a model's predictor, for as many tokens as main; nil: its file has none, or its engine
// does not speculate.
func PredictorKV(b *models.Bundle, main *kv.Cache, how batcher.Speculation) (*kv.Cache, error) {
	shape := speculating(b.Model.Config(), how).Predictor
	if shape.Layers == 0 {
		return nil, nil
	}
	return kv.New(shape, kv.Options{Type: main.Type(), BlockLen: main.BlockLen(), Blocks: main.Blocks(), Residuals: main.Residuals(), Cold: main.Cold()})
}
