package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// defaultName asks for the first model, whatever its name.
const defaultName = "default"

// Served is a model under the names that requests may use for it.
type Served struct {
	Model   *tts.Model
	Reward  *reward.Scorer // of a model that judges answers; nil: the model writes them
	Aliases []string       // beside Model.Name
	Demo    bool           // it is one of those built into the program
}

// published is a served model with what belongs to it.
type published struct {
	*tts.Model
	reward    *reward.Scorer // nil: a generator
	verifiers tts.Verifiers  // that can judge a generator's answers
	demo      bool
	offer     *offer // of a generator
}

// registry finds models by name. It is immutable.
type registry struct {
	models    []*published // in the order they were published
	generator *published   // the first
	names     []string     // in order of appearance: each model's name, its aliases, its name with presets
	byName    map[string]*published
	presets   map[string]scaling.Plan
	created   int64
}

// Publish makes models available and the server ready. The first generator
// answers for "default" and for requests that name none. Reward models judge
// for all generators whose words they know, the first by default. Later calls
// replace earlier ones; requests that run keep the model they have.
func (s *Server) Publish(served ...Served) error {
	presets, err := s.opt.plans()
	if err != nil {
		return err
	}
	r := &registry{byName: make(map[string]*published), presets: presets, created: time.Now().Unix()}
	for _, v := range served {
		m := &published{Model: v.Model, reward: v.Reward, demo: v.Demo}
		r.models = append(r.models, m)
		for _, name := range append([]string{v.Model.Name}, v.Aliases...) {
			if err := r.add(name, m); err != nil {
				return err
			}
		}
	}
	for _, m := range r.models {
		if m.reward != nil {
			continue
		}
		if r.generator == nil {
			r.generator = m
		}
		m.verifiers = reward.VerifiersFor(m.Model, r.rewards)
		m.offer = s.offer(r, m)
		for _, name := range m.offer.Presets {
			if err := r.add(m.Name+"+"+name, m); err != nil {
				return err
			}
		}
	}
	if r.generator == nil {
		return fmt.Errorf("server: no models to serve")
	}
	s.models.Store(r)
	return nil
}

func (r *registry) add(name string, m *published) error {
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
func (r *registry) rewards(yield func(string, *reward.Scorer) bool) {
	for _, name := range r.names {
		if reward := r.byName[name].reward; reward != nil && !yield(name, reward) {
			return
		}
	}
}

// model finds the model that a request asks for. What follows a "+" behind a
// generator's name is a preset.
func (s *Server) model(name string) (m *published, preset *scaling.Plan, err error) {
	r := s.models.Load()
	if r == nil {
		return nil, nil, errLoading
	}
	base, suffix := name, ""
	if at := strings.LastIndexByte(name, '+'); at >= 0 {
		base, suffix = name[:at], name[at+1:]
	}
	find := func(name string) *published {
		if name == "" || name == defaultName {
			return r.generator
		}
		return r.byName[name]
	}
	if m := find(base); m != nil && suffix != "" && m.reward == nil {
		if plan, ok := r.presets[suffix]; ok {
			return m, &plan, nil
		}
		if plan, ok := scaling.Preset(suffix); ok {
			return m, &plan, nil
		}
	}
	if m := find(name); m != nil {
		return m, nil, nil
	}
	return nil, nil, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("The model '%s' does not exist.", jsonread.Brief([]byte(name)))}
}

// modelCard is OpenAI's model object, with vLLM's max_model_len and root.
type modelCard struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"` // the model behind an alias
	MaxModelLen int    `json:"max_model_len"`
	Task        string `json:"task"` // generate, or reward: judges answers and writes none
	Offer       *offer `json:"lutra,omitempty"`
}

func (r *registry) card(id string, m *published) modelCard {
	task := "generate"
	if m.reward != nil {
		task = "reward"
	}
	return modelCard{ID: id, Object: "model", Created: r.created, OwnedBy: "lutra", Root: m.Name, MaxModelLen: m.Context, Task: task, Offer: m.offer}
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) error {
	r := s.models.Load()
	if r == nil {
		return errLoading
	}
	cards := make([]modelCard, len(r.names))
	for i, name := range r.names {
		cards[i] = r.card(name, r.byName[name])
	}
	writeJSON(w, http.StatusOK, struct {
		Object string      `json:"object"`
		Data   []modelCard `json:"data"`
	}{"list", cards})
	return nil
}

// showModel's path is a wildcard: names may hold slashes, escaped or not.
func (s *Server) showModel(w http.ResponseWriter, r *http.Request) error {
	name, err := url.PathUnescape(chi.URLParam(r, "*"))
	if err != nil || name == "" {
		return s.listModels(w, r)
	}
	m, _, err := s.model(name)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, s.models.Load().card(name, m))
	return nil
}
