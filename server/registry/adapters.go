package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/tts/embed"
)

// AdapterMark stands between the names of a model and of its adapter: base:adapter.
const AdapterMark = ":"

// MaxScale bounds what adapters are multiplied by.
const MaxScale = 1e4

// Adapters are the adapters of a model. Any goroutine may use them.
type Adapters struct {
	List []models.Use // each at the scale that its own name stands for

	mu     sync.Mutex
	scales []float32 // of requests that name the model and no scales; nil: all are 0
}

// Scales returns the scales of requests that name the model and no scales, one an adapter.
func (a *Adapters) Scales() []float32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scales == nil {
		return make([]float32, len(a.List))
	}
	return slices.Clone(a.scales)
}

// SetScales changes them for requests to come.
func (a *Adapters) SetScales(scales []float32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scales = slices.Clone(scales)
}

// Names returns the names of the adapters.
func (a *Adapters) Names() (names []string) {
	if a == nil {
		return nil
	}
	for _, u := range a.List {
		names = append(names, u.Adapter.Name)
	}
	return names
}

// AdapterNames returns the names of an adapter: behind each of its model's, and its own.
func AdapterNames(adapter string, model ...string) (names []string) {
	for _, name := range model {
		names = append(names, name+AdapterMark+adapter)
	}
	return append(names, adapter)
}

// Scaled returns the model with its adapters at scales, one an adapter.
func (m *Model) Scaled(scales []float32) (*Model, error) {
	var uses []models.Use
	for i, u := range m.Adapters.List {
		uses = append(uses, models.Use{Adapter: u.Adapter, Scale: scales[i]})
	}
	return m.with(uses...)
}

// WithDefaultScales returns the model for requests that name it and no scales.
func (m *Model) WithDefaultScales() (*Model, error) {
	if m.Adapters == nil || m.parent != nil {
		return m, nil
	}
	return m.Scaled(m.Adapters.Scales())
}

// with returns the model with adapters.
func (m *Model) with(uses ...models.Use) (*Model, error) {
	v := *m
	var err error
	if v.Model, err = m.Model.With(uses...); err != nil || v.Model.Variant == nil {
		return &v, err
	}
	if m.Rank != nil {
		v.Rank = m.Rank.With(v.Model)
		v.Embed, _ = v.Rank.(*embed.Embedder)
	}
	what := m.Fingerprint
	for _, u := range v.Model.Variant.Uses {
		what += fmt.Sprintf(" %s %x", u.Adapter.Sketch, u.Scale)
	}
	sum := sha256.Sum256([]byte(what))
	v.Fingerprint = "fp_" + hex.EncodeToString(sum[:5])
	return &v, nil
}

// addAdapters registers the adapters of m as models.
func (r *Registry) addAdapters(m *Model) error {
	if m.Adapters == nil {
		return nil
	}
	for i := range m.Adapters.List {
		use := m.Adapters.List[i]
		v, err := m.with(use)
		if err != nil {
			return fmt.Errorf("server: model %q: %w", m.Name, err)
		}
		v.parent, v.root = m, filepath.Base(use.Adapter.Path)
		v.Model.Name = m.Name + AdapterMark + use.Adapter.Name
		v.switched = map[string]*Model{}
		for word, on := range m.switched {
			w := *v
			w.Thinking = on.Thinking
			v.switched[word] = &w
		}
		for _, name := range AdapterNames(use.Adapter.Name, append([]string{m.Name}, m.Aliases...)...) {
			if err := r.add(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Parent returns the model that m is an adapter of, nil if it is none.
func (m *Model) Parent() *Model { return m.parent }
