package residency

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lutra-lm/lutra/server/registry"
)

// roster holds the models of a set, and which of them are in memory. It has no lock: Set.mu guards it, but for the registry.
type roster struct {
	settings *registry.Settings
	registry atomic.Pointer[registry.Registry] // of the models in memory
	entries  []*entry                          // in the order of the sources
	dropped  []*entry                          // that are no sources any more, and have yet to leave memory
	clock    uint64                            // counts leases
}

// Registry returns the models that are in memory.
func (r *roster) Registry() *registry.Registry { return r.registry.Load() }

// rebuild makes the registry anew.
func (r *roster) rebuild() error {
	var served []registry.Served
	for _, e := range r.entries {
		if e.resident != nil && !e.going {
			served = append(served, e.resident.Served)
		}
	}
	made, err := registry.New(r.settings, served...)
	if err != nil {
		return err
	}
	r.registry.Store(made)
	return nil
}

// all returns the entries that may be in memory.
func (r *roster) all() []*entry { return slices.Concat(r.entries, r.dropped) }

// find returns the model of a name, nil if there is none.
func (r *roster) find(name string, tasks []string) *entry {
	if name == "" || name == registry.DefaultName {
		for _, task := range tasks {
			if i := slices.IndexFunc(r.entries, func(e *entry) bool { return e.task() == task }); i >= 0 {
				return r.entries[i]
			}
		}
		if len(tasks) > 0 {
			return nil
		}
		m, _, err := r.Registry().Find("")
		if err != nil {
			return nil
		}
		name = m.Name
	}
	if e := r.named(name); e != nil {
		return e
	}
	short := name
	for range registry.MostWords {
		at := strings.LastIndexByte(short, '+')
		if at < 0 {
			break
		}
		if short = short[:at]; r.named(short) != nil {
			return r.named(short)
		}
	}
	if short, tagged := strings.CutSuffix(name, registry.Tag); tagged {
		return r.find(short, nil)
	}
	return nil
}

// named returns the model that has a name, nil if none has.
func (r *roster) named(name string) *entry {
	for _, e := range r.entries {
		names := append([]string{e.Name}, e.Aliases...)
		if slices.Contains(names, name) || slices.ContainsFunc(e.Adapters, func(a Adapter) bool {
			return slices.Contains(registry.AdapterNames(a.Name, names...), name)
		}) {
			return e
		}
	}
	return nil
}

// busyBefore tells whether e itself has yet to go, or another is going.
func (r *roster) busyBefore(e *entry) bool {
	return e.resident != nil || slices.ContainsFunc(r.all(), func(o *entry) bool { return o.going })
}

// freeable returns how many bytes would be free if all had gone that may.
func (r *roster) freeable() (bytes int64) {
	for _, e := range r.all() {
		if e.resident != nil && !e.stays() {
			bytes += e.resident.Bytes
		}
	}
	return bytes
}

// oldest returns the model whose use is longest ago, of those that may go: first among those
// without a lease, then among the others. There is one where freeable is not 0.
func (r *roster) oldest() (v *entry) {
	for _, e := range r.all() {
		if e.resident == nil || e.stays() {
			continue
		}
		if v == nil || (e.leases == 0) != (v.leases == 0) && e.leases == 0 || (e.leases == 0) == (v.leases == 0) && e.used < v.used {
			v = e
		}
	}
	return v
}

// pin has the entries of pinned sources stay in memory from now on: none makes room for the next.
// It returns those that were not pinned before.
func (r *roster) pin(next []*entry, sources []Source) (pinned []*entry) {
	for i, e := range next {
		if (sources[i].Pinned || i == 0) && !e.Pinned {
			e.Pinned = true
			e.rest()
			pinned = append(pinned, e)
		}
	}
	return pinned
}

// successors returns the entries of sources, old ones where they are the same.
func (r *roster) successors(sources []Source, residents map[string]*Resident) ([]*entry, error) {
	var next []*entry
	names := map[string]bool{}
	for i, src := range sources {
		for _, name := range append([]string{src.Name}, src.Aliases...) {
			if names[name] || name == "" || name == registry.DefaultName {
				return nil, fmt.Errorf("residency: a model cannot be named %q, or two are", name)
			}
			names[name] = true
		}
		at := slices.IndexFunc(r.entries, func(e *entry) bool { return e.Name == src.Name })
		if at >= 0 && r.entries[at].Key == src.Key {
			next = append(next, r.entries[at])
			continue
		}
		e := &entry{Source: src, resident: residents[src.Name]}
		e.Pinned = src.Pinned || i == 0
		next = append(next, e)
	}
	return next, nil
}

// state tells of a model.
func (r *roster) state(e *entry) State {
	src := e.Source
	st := State{Source: &src, Status: e.status(), Failed: e.failed != nil, Expires: e.expires}
	if e.resident != nil && !e.going {
		st.Model, st.Bytes = r.Registry().Named(e.Name), e.resident.Bytes
	}
	return st
}

// cardsOf returns the cards of a model in memory.
func (r *roster) cardsOf(e *entry) (cards []registry.Card) {
	for _, c := range r.Registry().Cards() {
		if c.Of(e.Name) {
			cards = append(cards, c)
		}
	}
	return cards
}

// allCards returns the cards of all names, as Set.Cards does.
func (r *roster) allCards() []registry.Card {
	var plain, more []registry.Card
	for _, e := range r.entries {
		cards := e.cards
		if e.resident != nil && !e.going {
			cards = r.cardsOf(e)
		}
		if cards == nil {
			for _, name := range append([]string{e.Name}, e.Aliases...) {
				cards = append(cards, r.Registry().Unloaded(name, e.Name, &e.About))
			}
			for _, a := range e.Adapters {
				for _, name := range registry.AdapterNames(a.Name, append([]string{e.Name}, e.Aliases...)...) {
					c := r.Registry().Unloaded(name, a.File, &e.About)
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

// namesOf returns the names of a model, or of its adapter by whose name it was found.
func (r *roster) namesOf(e *entry, name string) []string {
	names := append([]string{e.Name}, e.Aliases...)
	for by := registry.WithoutTag(name); r.named(by) != e || !slices.Contains(names, by); {
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

// use counts n leases more, the latest of all.
func (r *roster) use(e *entry, n int) {
	r.clock++
	e.leases, e.used = e.leases+n, r.clock
	e.rest()
}
