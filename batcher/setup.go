package batcher

import "github.com/lutra-lm/lutra/models"

// setup tells a sequence what its engine can take, and how it is tuned.
type setup struct {
	opt    Options
	bounds bounds
	// variant computes the sequences; nil: the model as it is.
	variant *models.Variant
}
