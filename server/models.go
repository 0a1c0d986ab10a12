package server

import (
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/server/anthropic"
	"github.com/lutra-lm/lutra/server/registry"
)

// Publish makes models available and the server ready (registry.New). Later calls
// replace earlier ones; requests that run keep the model they have.
func (s *Server) Publish(served ...registry.Served) error {
	presets, err := s.opt.plans()
	if err != nil {
		return err
	}
	set := registry.Settings{Presets: presets, Limits: s.opt.Limits, Scaling: s.opt.DefaultScaling, ReasoningFormat: s.opt.ReasoningFormat}
	r, err := registry.New(&set, served...)
	if err != nil {
		return err
	}
	s.models.Store(r)
	return nil
}

// registered are the models, once there are any.
func (s *Server) registered() (*registry.Registry, error) {
	if r := s.models.Load(); r != nil {
		return r, nil
	}
	return nil, errLoading
}

func (s *Server) listModels(w http.ResponseWriter, req *http.Request) error {
	r, err := s.registered()
	if err != nil {
		return err
	}
	if fromAnthropic(req) {
		cards := []anthropic.Card{}
		for _, c := range r.Cards() {
			if c.Writes() {
				cards = append(cards, anthropicCard(c))
			}
		}
		writeJSON(w, http.StatusOK, anthropic.NewList(cards))
		return nil
	}
	writeJSON(w, http.StatusOK, struct {
		Object string          `json:"object"`
		Data   []registry.Card `json:"data"`
	}{"list", r.Cards()})
	return nil
}

// showModel's path is a wildcard: names may hold slashes, escaped or not.
func (s *Server) showModel(w http.ResponseWriter, r *http.Request) error {
	name, err := url.PathUnescape(chi.URLParam(r, "*"))
	if err != nil || name == "" {
		return s.listModels(w, r)
	}
	models, err := s.registered()
	if err != nil {
		return err
	}
	m, _, err := models.Find(name)
	if err != nil {
		return err
	}
	card := models.Card(name, m)
	if fromAnthropic(r) && card.Writes() {
		writeJSON(w, http.StatusOK, anthropicCard(card))
		return nil
	}
	writeJSON(w, http.StatusOK, card)
	return nil
}

func anthropicCard(c registry.Card) anthropic.Card {
	return anthropic.NewCard(c.ID, time.Unix(c.Created, 0), c.MaxModelLen)
}
