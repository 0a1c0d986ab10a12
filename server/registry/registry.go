package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// defaultName asks for the first model, whatever its name.
const defaultName = "default"

// Served is a model under the names that requests may use for it.
type Served struct {
	Model   *tts.Model
	Reward  *reward.Scorer  // of a model that scores answers; nil: the model writes them
	Embed   *embed.Embedder // of a model that makes vectors of texts
	Rank    embed.Scorer    // of a model that scores documents; embedders do too
	Aliases []string        // beside Model.Name
	Demo    bool            // it is one of those built into the program
}

// Model is a served model with what belongs to it.
type Model struct {
	*tts.Model
	Reward    *reward.Scorer  // of a model that judges answers
	Embed     *embed.Embedder // of a model that makes vectors of texts
	Rank      embed.Scorer    // of a model that scores documents
	Verifiers tts.Verifiers   // that can score a generator's answers
	// Fingerprint changes where answers to the same seed may.
	Fingerprint string
	Thinking    *bool // whether it thinks, by the name that it was asked for under; nil: the name says nothing
	demo        bool
	offer       *offer            // of a generator
	switched    map[string]*Model // it with thinking on and off, by thinkingWords; nil: it cannot be switched
}

// Registry finds models by name. It is immutable.
type Registry struct {
	Models    []*Model // in the order in which they are served
	generator *Model   // the first
	names     []string // in order of appearance: each model's name, its aliases, its name with presets
	byName    map[string]*Model
	presets   map[string]scaling.Plan
	searching map[string]bool // names with presets
	created   int64
}

// Settings are what holds for all models.
type Settings struct {
	Presets         map[string]scaling.Plan // names that may follow a generator's and a "+"
	Limits          scaling.Limits          // of searches
	Scaling         string                  // the search of requests that ask for none, as it is written; empty: none
	ReasoningFormat string                  // of chats that name none
}

// New registers models. The first generator answers for "default" and for
// requests that name none. Reward models score answers of all generators whose tokens
// they read, the first by default.
func New(set *Settings, served ...Served) (*Registry, error) {
	r := &Registry{byName: make(map[string]*Model), searching: make(map[string]bool), presets: set.Presets, created: time.Now().Unix()}
	for _, v := range served {
		m := &Model{Model: v.Model, Reward: v.Reward, Embed: v.Embed, Rank: v.Rank, demo: v.Demo}
		var err error
		if m.Fingerprint, err = Fingerprint(v.Model); err != nil {
			return nil, fmt.Errorf("server: model %q: %w", v.Model.Name, err)
		}
		r.Models = append(r.Models, m)
		for _, name := range append([]string{v.Model.Name}, v.Aliases...) {
			if err := r.add(name, m); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range r.Models {
		if !m.Writes() {
			continue
		}
		if r.generator == nil {
			r.generator = m
		}
		m.Verifiers = reward.VerifiersFor(m.Model, r.rewards)
		m.offer = r.offer(m, set)
		for _, name := range m.offer.Presets {
			if err := r.add(m.Name+"+"+name, m); err != nil {
				return nil, err
			}
			r.searching[m.Name+"+"+name] = true
		}
		if err := r.addThinking(m); err != nil {
			return nil, err
		}
	}
	if len(r.Models) == 0 || r.generator == nil && !slices.ContainsFunc(r.Models, func(m *Model) bool { return m.Rank != nil }) {
		return nil, fmt.Errorf("server: no models to serve")
	}
	return r, nil
}

func (r *Registry) add(name string, m *Model) error {
	if name == "" || name == defaultName {
		return fmt.Errorf("server: a model cannot be named %q", name)
	}
	if r.byName[name] != nil {
		return fmt.Errorf("server: two models are named %q", name)
	}
	r.byName[name] = m
	r.names = append(r.names, name)
	return nil
}

// rewards yields the reward models by all of their names.
func (r *Registry) rewards(yield func(string, *reward.Scorer) bool) {
	for _, name := range r.names {
		if reward := r.byName[name].Reward; reward != nil && !yield(name, reward) {
			return
		}
	}
}

// Tag is what clients of Ollama add to names that have none.
const Tag = ":latest"

// Find finds the model that a request asks for, or returns a *NotFoundError. A
// preset may follow a generator's name and a "+", and a word that switches thinking. A
// name that is not known counts without its Tag.
func (r *Registry) Find(name string) (m *Model, preset *scaling.Plan, err error) {
	if m, preset = r.withPreset(name); m != nil {
		return m, preset, nil
	}
	if base, word := lastWord(name); word != "" {
		if m, preset = r.withPreset(base); m != nil && m.Thinking == nil && m.switched[word] != nil {
			return m.switched[word], preset, nil
		}
	}
	if short, tagged := strings.CutSuffix(name, Tag); tagged {
		return r.Find(short)
	}
	return nil, nil, &NotFoundError{Name: name, Wanted: "model that writes text"}
}

// withPreset is the model of a name that a preset may follow, nil if there is none.
func (r *Registry) withPreset(name string) (*Model, *scaling.Plan) {
	base, suffix := lastWord(name)
	if m := r.find(base); m != nil && suffix != "" && m.Writes() {
		if plan, ok := r.presets[suffix]; ok {
			return m, &plan
		}
		if plan, ok := scaling.Preset(suffix); ok {
			return m, &plan
		}
	}
	return r.find(name), nil
}

// lastWord divides a name at its last "+".
func lastWord(name string) (base, word string) {
	if at := strings.LastIndexByte(name, '+'); at >= 0 {
		return name[:at], name[at+1:]
	}
	return name, ""
}

// Judge is the reward model that a request asks for, by default the first; the
// *NotFoundError of a server without any has no name. The model may be none.
func (r *Registry) Judge(name string) (*Model, error) {
	return r.findFirst(name, "reward model", func(m *Model) bool { return m.Reward != nil })
}

// NotFoundError says that there is no model of a name or, without a name, none that does
// what is wanted.
type NotFoundError struct{ Name, Wanted string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("server: there is no model %q", e.Name) }

// Card is OpenAI's model object, with vLLM's max_model_len and root.
type Card struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"` // the model behind an alias
	MaxModelLen int    `json:"max_model_len"`
	Task        string `json:"task"` // generate; reward: scores answers; embed: makes vectors; score: scores documents
	Offer       *offer `json:"lutra,omitempty"`
}

// Writes tells whether the model is a generator.
func (c *Card) Writes() bool { return c.Task == taskGenerate }

// Cards are of all names, in the order in which they were registered.
func (r *Registry) Cards() []Card {
	cards := make([]Card, len(r.names))
	for i, name := range r.names {
		cards[i] = r.Card(name, r.byName[name])
	}
	return cards
}

// Card is that of a model under one of its names.
func (r *Registry) Card(id string, m *Model) Card {
	return Card{ID: id, Object: "model", Created: r.created, OwnedBy: "lutra", Root: m.Name, MaxModelLen: m.Context, Task: m.task(), Offer: m.offer}
}
