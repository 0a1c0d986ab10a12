// Package registry finds models by the names that requests use for them, and says
// what each offers.
package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// DefaultName asks for the first model, whatever its name.
const DefaultName = "default"

// Served is a model under the names that requests may use for it.
type Served struct {
	*tts.Model
	Reward   *reward.Scorer  // of a model that scores answers; nil: the model writes them
	Embed    *embed.Embedder // of a model that makes vectors of texts
	Rank     embed.Scorer    // of a model that scores documents; embedders do too
	Aliases  []string        // besides Model.Name
	Adapters *Adapters       // of the model; nil: it has none
	Demo     bool            // it is one of those built into the program
	// Fingerprint changes where answers to the same seed may; empty: New finds it out.
	Fingerprint string
}

// About describes a model before it is loaded. Zero values are not known.
type About struct {
	Task         string // as Card.Task
	Arch         string
	Params       int64  // weights
	Quantization string // of the file, such as Q4_0
	Context      int    // tokens
	Size         int64  // bytes of the file
	Modified     time.Time
}

// Model is a served model with what belongs to it.
type Model struct {
	Served
	Verifiers tts.Verifiers     // that can score a generator's answers
	Thinking  *bool             // whether it thinks, by the name that it was asked for under; nil: the name says nothing
	Curve     *profile.Curve    // what methods reach and cost with a generator; nil: it was not profiled
	Forecast  *profile.Forecast // of how long its answers take
	offer     *offer            // of a generator
	parent    *Model            // of an adapter: the model that it changes
	root      string            // of an adapter: its file
	switched  map[string]*Model // it with thinking on and off, by thinkingWords; nil: it cannot be switched
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

// Tag is added by clients of Ollama to names that have none.
const Tag = ":latest"

// NotFoundError says that there is no model of a name or, without a name, none that does
// what is wanted.
type NotFoundError struct{ Name, Wanted string }

// thinkingWords may follow the name of a model whose chat template switches thinking, besides a preset's:
// bonsai-1.7b+nothink+sc8.
var thinkingWords = map[string]bool{"think": true, "nothink": false}

// MostWords is the most words that may follow a model's name, each after a "+".
const MostWords = 2

// Settings hold for all models.
type Settings struct {
	Presets         map[string]scaling.Plan // names that may follow a generator's and a "+"
	Limits          scaling.Limits          // of searches
	Scorers         map[string]tts.Scorer   // services that judge candidates, by their names as verifiers
	Scaling         string                  // the search of requests that ask for none, as it is written; empty: none
	ReasoningFormat string                  // of chats that name none
	Created         time.Time               // of cards; zero: now
	Profiles        []*profile.Profile      // the first that has a model counts
}

// offer lists what a user interface may offer for a generator.
type offer struct {
	Demo      bool             `json:"demo"`      // it is built into the program and knows little
	Methods   []scaling.Method `json:"methods"`   // of test-time scaling that work with it
	Verifiers []string         `json:"verifiers"` // the default first; then its own scores
	Presets   []string         `json:"presets"`   // that may follow its name
	MaxTurns  int              `json:"max_turns,omitempty"`
	Thinking  bool             `json:"thinking"` // its answers may begin with thinking
	Defaults  defaults         `json:"defaults"`

	probes []string // of Verifiers
}

// defaults hold for requests that say nothing else.
type defaults struct {
	sampling.Config        // of OpenAI's and Anthropic's APIs
	MaxTokens       *int   `json:"max_tokens"` // null: up to the context's end
	ReasoningFormat string `json:"reasoning_format"`
	Scaling         string `json:"scaling"` // empty: none
}

// What models do, as Card.Task says it.
const (
	TaskGenerate = "generate"
	TaskReward   = "reward"
	TaskEmbed    = "embed"
	TaskScore    = "score"
)

// Card is OpenAI's model object, with vLLM's max_model_len, root and parent.
type Card struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"`             // the model behind an alias, or the file of an adapter
	Parent      string `json:"parent,omitempty"` // of an adapter: the model that it changes
	MaxModelLen int    `json:"max_model_len"`
	Task        string `json:"task"` // generate; reward: scores answers; embed: makes vectors; score: scores documents
	Offer       *offer `json:"lutra,omitempty"`
	Status      Status `json:"status"`
}

// Status is where a model is, as llama-server says it.
type Status struct {
	Value  string `json:"value"`            // loaded, loading, unloaded
	Failed bool   `json:"failed,omitempty"` // it could not be loaded
}

// rewards yields the reward models by all of their names.
func (r *Registry) rewards(yield func(string, *reward.Scorer) bool) {
	for _, name := range r.names {
		if reward := r.byName[name].Reward; reward != nil && !yield(name, reward) {
			return
		}
	}
}

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
	if short := WithoutTag(name); short != name {
		return r.Find(short)
	}
	return nil, nil, &NotFoundError{Name: name, Wanted: "model that writes text"}
}

// withPreset returns the model of a name that a preset may follow, nil if there is none.
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

func (e *NotFoundError) Error() string { return fmt.Sprintf("server: there is no model %q", e.Name) }

// find returns the model of a name without a preset, nil if there is none.
func (r *Registry) find(name string) *Model {
	if m := r.plain(name); m != nil {
		return m
	}
	if base, word := lastWord(name); word != "" {
		if m := r.plain(base); m != nil && m.Thinking == nil {
			return m.switched[word]
		}
	}
	return nil
}

// plain returns the model of a name without words after it.
func (r *Registry) plain(name string) *Model {
	switch {
	case name == "", name == DefaultName:
		return r.generator
	case r.searching[name]:
		return nil
	}
	return r.byName[name]
}

func (r *Registry) add(name string, m *Model) error {
	if name == "" || name == DefaultName {
		return fmt.Errorf("server: a model cannot be named %q", name)
	}
	if r.byName[name] != nil {
		return fmt.Errorf("server: two models are named %q", name)
	}
	r.byName[name] = m
	r.names = append(r.names, name)
	return nil
}

// Writes tells whether m is a generator.
func (m *Model) Writes() bool { return m.Reward == nil && m.Rank == nil }

// Task returns what m does, in vLLM's words where it has any.
func (m *Served) Task() string {
	switch {
	case m.Reward != nil:
		return TaskReward
	case m.Embed != nil:
		return TaskEmbed
	case m.Rank != nil:
		return TaskScore
	}
	return TaskGenerate
}

// Named returns the model of that name, nil if there is none.
func (r *Registry) Named(name string) *Model { return r.byName[name] }

// WithoutTag returns a name without its Tag.
func WithoutTag(name string) string { return strings.TrimSuffix(name, Tag) }

// Embedder returns the model that a request for vectors asks for, by default the first that
// makes any; the *NotFoundError of a server without any has no name. The model may be
// none.
func (r *Registry) Embedder(name string) (*Model, error) {
	return r.findFirst(name, "embedding model", func(m *Model) bool { return m.Embed != nil })
}

// Ranker returns the model that a request for scores of documents asks for, by default the
// first that is made for it, or else the first that embeds texts. As Embedder.
func (r *Registry) Ranker(name string) (*Model, error) {
	m, err := r.findFirst(name, "", func(m *Model) bool { return m.Rank != nil && m.Embed == nil })
	if err != nil {
		return r.Embedder(name)
	}
	return m, nil
}

// findFirst finds a model by its name or, without one, by its task.
func (r *Registry) findFirst(name, wanted string, does func(*Model) bool) (*Model, error) {
	if name != "" && name != DefaultName {
		m, _, err := r.Find(name)
		return m, err
	}
	for _, m := range r.Models {
		if does(m) {
			return m, nil
		}
	}
	return nil, &NotFoundError{Wanted: wanted}
}

// Judge returns the reward model that a request asks for, by default the first; the
// *NotFoundError of a server without any has no name. The model may be none.
func (r *Registry) Judge(name string) (*Model, error) {
	return r.findFirst(name, "reward model", func(m *Model) bool { return m.Reward != nil })
}

// Writes tells whether the model is a generator.
func (c *Card) Writes() bool { return c.Task == TaskGenerate }

// Cards returns the cards of all names, in the order in which they were registered.
func (r *Registry) Cards() []Card {
	cards := make([]Card, len(r.names))
	for i, name := range r.names {
		cards[i] = r.Card(name, r.byName[name])
	}
	return cards
}

// Card returns the card of a model under one of its names.
func (r *Registry) Card(id string, m *Model) Card {
	c := Card{ID: id, Object: "model", Created: r.created, OwnedBy: "lutra", Root: m.Name, MaxModelLen: m.Context, Task: m.Task(), Offer: m.offer}
	if m.parent != nil {
		c.Root, c.Parent = m.root, m.parent.Name
	}
	return c
}

// OfferOnly has the card offer those verifiers alone that may be used, and the model's own probes.
func (c *Card) OfferOnly(may func(verifier string) bool) {
	if c.Offer != nil {
		o := *c.Offer
		o.Verifiers = slices.DeleteFunc(slices.Clone(o.Verifiers), func(name string) bool { return !may(name) && !slices.Contains(o.probes, name) })
		c.Offer = &o
	}
}

// Of tells whether the card belongs to a model, or to one of its adapters.
func (c *Card) Of(model string) bool {
	return c.Parent == model || c.Parent == "" && c.Root == model
}

// Unloaded returns the card of a model that is not in memory, under one of its names.
func (r *Registry) Unloaded(id, model string, a *About) Card {
	return Card{ID: id, Object: "model", Created: r.created, OwnedBy: "lutra", Root: model, MaxModelLen: a.Context, Task: cmp.Or(a.Task, TaskGenerate)}
}

// addThinking registers m with thinking switched on and off. A preset of such a name
// goes first.
func (r *Registry) addThinking(m *Model) error {
	if !m.ThinkingSwitches() {
		return nil
	}
	m.switched = map[string]*Model{}
	for _, word := range []string{"think", "nothink"} {
		v := *m
		v.Thinking = new(thinkingWords[word])
		m.switched[word] = &v
		if _, preset := r.presets[word]; preset {
			continue
		}
		if err := r.add(m.Name+"+"+word, &v); err != nil {
			return err
		}
	}
	return nil
}

// Switch switches thinking in a prompt as the model's name says, if the prompt does
// not say itself.
func (m *Model) Switch(p *tts.Prompt) {
	if m.Thinking != nil {
		p.SwitchThinking(*m.Thinking)
	}
}
