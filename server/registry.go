package server

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/tts"
)

// defaultName asks for the first model, whatever its name.
const defaultName = "default"

// Served is a model under the names that requests may use for it.
type Served struct {
	Model   *tts.Model
	Aliases []string // beside Model.Name
}

// registry finds models by name. It is immutable.
type registry struct {
	models  []*tts.Model
	names   []string // in order of appearance: each model's name, then its aliases
	byName  map[string]*tts.Model
	created int64
}

// Publish makes models available and the server ready. The first one answers
// for "default" and for requests that name none. Later calls replace earlier
// ones; requests that run keep the model they have.
func (s *Server) Publish(served ...Served) error {
	if len(served) == 0 {
		return fmt.Errorf("server: no models to serve")
	}
	r := &registry{byName: make(map[string]*tts.Model), created: time.Now().Unix()}
	for _, v := range served {
		r.models = append(r.models, v.Model)
		for _, name := range append([]string{v.Model.Name}, v.Aliases...) {
			if name == "" || name == defaultName {
				return fmt.Errorf("server: a model cannot be named %q", name)
			}
			if r.byName[name] != nil {
				return fmt.Errorf("server: two models are named %q", name)
			}
			r.byName[name] = v.Model
			r.names = append(r.names, name)
		}
	}
	s.models.Store(r)
	return nil
}

// model finds the model that a request asks for.
func (s *Server) model(name string) (*tts.Model, error) {
	r := s.models.Load()
	if r == nil {
		return nil, errLoading
	}
	if name == "" || name == defaultName {
		return r.models[0], nil
	}
	if m := r.byName[name]; m != nil {
		return m, nil
	}
	return nil, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("The model '%s' does not exist.", brief([]byte(name)))}
}

// modelCard is OpenAI's model object, with vLLM's max_model_len and root.
type modelCard struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"` // the model behind an alias
	MaxModelLen int    `json:"max_model_len"`
}

func (r *registry) card(id string, m *tts.Model) modelCard {
	return modelCard{ID: id, Object: "model", Created: r.created, OwnedBy: "lutra", Root: m.Name, MaxModelLen: m.Context}
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
	m, err := s.model(name)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, s.models.Load().card(name, m))
	return nil
}
