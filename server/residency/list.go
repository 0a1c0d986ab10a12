package residency

import (
	"cmp"
	"slices"

	"github.com/lutra-lm/lutra/server/registry"
)

// States tells of all models, in the order of the sources.
func (s *Set) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]State, len(s.entries))
	for i, e := range s.entries {
		list[i] = s.state(e)
	}
	return list
}

// State tells of the model of a name, as Hold finds it, or returns a *registry.NotFoundError.
func (s *Set) State(name string) (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(name, nil); e != nil {
		return s.state(e), nil
	}
	return State{}, &registry.NotFoundError{Name: name}
}

// Names returns the names of the model that Hold finds. If it is found by an adapter's name, they are the
// adapter's. Without such a model there are none.
func (s *Set) Names(name string, tasks ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(name, tasks); e != nil {
		return s.namesOf(e, name)
	}
	return nil
}

// Cards returns the cards of all names: first the models' in order, then names with presets and other words. The
// words of a model that has never been in memory are not known.
func (s *Set) Cards() []registry.Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allCards()
}

// Card returns the card of a name, a *registry.NotFoundError if there is none.
func (s *Set) Card(name string) (registry.Card, error) {
	cards := s.Cards()
	for _, n := range []string{name, registry.WithoutTag(name)} {
		if i := slices.IndexFunc(cards, func(c registry.Card) bool { return c.ID == n }); i >= 0 {
			return cards[i], nil
		}
	}
	m, _, err := s.Registry().Find(name)
	if err != nil {
		return registry.Card{}, err
	}
	c := s.Registry().Card(cmp.Or(name, m.Name), m)
	c.Status = registry.Status{Value: string(Loaded)}
	return c, nil
}
