package server

import (
	"errors"
	"sync/atomic"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
)

// published holds the models that requests are answered with, and says whether any request is answered.
type published struct {
	set      atomic.Pointer[residency.Set] // nil while loading
	loading  loading
	draining atomic.Bool
}

// errLoading says that there are no models yet.
var errLoading = errors.New("server: the model is being loaded")

// ready returns why no request can be answered; nil: requests can be.
func (p *published) ready() error {
	switch {
	case p.draining.Load():
		return errDraining
	case p.set.Load() == nil:
		return errLoading
	}
	return nil
}

// known returns the models that the server can answer with, once there are any.
func (p *published) known() (*residency.Set, error) {
	if set := p.set.Load(); set != nil {
		return set, nil
	}
	return nil, errLoading
}

// loaded returns the models in memory.
func (p *published) loaded() []*registry.Model {
	if set := p.set.Load(); set != nil {
		return set.Registry().Models
	}
	return nil
}

// engines yields the engines of all models in memory.
func (p *published) engines(yield func(model string, e *batcher.Engine) bool) {
	for _, m := range p.loaded() {
		if !yield(m.Name, m.Engine) {
			return
		}
	}
}

// adapters returns how many adapters a model in memory has.
func (p *published) adapters(model string) int {
	for _, m := range p.loaded() {
		if m.Name == model {
			return len(m.Adapters.Names())
		}
	}
	return 0
}

// failed returns the names of the models whose engines have failed.
func (p *published) failed() (names []string) {
	for _, m := range p.loaded() {
		if m.Engine.Failed() != nil {
			names = append(names, m.Name)
		}
	}
	return names
}
