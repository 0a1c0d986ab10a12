package residency

import (
	"cmp"
	"slices"
	"strings"

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
	e := s.find(name, tasks)
	if e == nil {
		return nil
	}
	names := append([]string{e.Name}, e.Aliases...)
	for by := registry.WithoutTag(name); s.named(by) != e || !slices.Contains(names, by); {
		for _, a := range e.Adapters {
			if adapted := registry.AdapterNames(a.Name, names...); slices.Contains(adapted, by) {
				return adapted
			}
		}
		at := strings.LastIndexByte(by, '+')
		if at < 0 {
			break // by default
		}
		by = by[:at]
	}
	return names
}

// state needs mu.
func (s *Set) state(e *entry) State {
	src := e.Source
	st := State{Source: &src, Status: e.status(), Failed: e.failed != nil, Expires: e.expires}
	if e.resident != nil && !e.going {
		st.Model, st.Bytes = s.Registry().Named(e.Name), e.resident.Bytes
	}
	return st
}

// Cards returns the cards of all names: first the models' in order, then names with presets and other words. The
// words of a model that has never been in memory are not known.
func (s *Set) Cards() []registry.Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	var plain, more []registry.Card
	for _, e := range s.entries {
		cards := e.cards
		if e.resident != nil && !e.going {
			cards = s.cardsOf(e)
		}
		if cards == nil {
			for _, name := range append([]string{e.Name}, e.Aliases...) {
				cards = append(cards, s.Registry().Unloaded(name, e.Name, &e.About))
			}
			for _, a := range e.Adapters {
				for _, name := range registry.AdapterNames(a.Name, append([]string{e.Name}, e.Aliases...)...) {
					c := s.Registry().Unloaded(name, a.File, &e.About)
					c.Parent = e.Name
					cards = append(cards, c)
				}
			}
		}
		for _, c := range cards {
			if c.Status = (registry.Status{Value: string(e.status()), Failed: e.failed != nil}); c.ID == e.Name || slices.Contains(e.Aliases, c.ID) {
				plain = append(plain, c)
			} else {
				more = append(more, c)
			}
		}
	}
	return append(plain, more...)
}

// cardsOf returns the cards of a model in memory. It needs mu.
func (s *Set) cardsOf(e *entry) (cards []registry.Card) {
	for _, c := range s.Registry().Cards() {
		if c.Of(e.Name) {
			cards = append(cards, c)
		}
	}
	return cards
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
