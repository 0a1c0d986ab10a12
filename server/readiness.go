package server

import (
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/api"
)

// Loading notes that done of total bytes of a model have been read, for /readyz,
// until Publish makes models available. Any goroutine may call it.
func (s *Server) Loading(model string, done, total int64) {
	p := modelProgress{Model: model}
	if total > 0 {
		p.Progress = min(1, float64(done)/float64(total))
	}
	l := &s.loading
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.models {
		if l.models[i].Model == model {
			l.models[i] = p
			return
		}
	}
	l.models = append(l.models, p)
}

// notReady is the answer of /readyz while that is not 200: the error envelope, and
// the models that it is about.
type notReady struct {
	api.Envelope
	Loading []modelProgress `json:"loading,omitempty"`
	Failed  []string        `json:"failed,omitempty"` // models
}

// readyz tells load balancers whether to send requests here.
func (s *Server) readyz(c *api.Call) error {
	err := s.ready()
	failed := s.failedModels()
	if err == nil && len(failed) > 0 {
		err = modelFailed(failed...)
	}
	if err == nil && cpulimit.Stuck() {
		err = errStuck
	}
	if err == nil {
		return c.JSON(map[string]string{"status": "ready"})
	}
	f := toFault(err)
	answer := notReady{Envelope: api.Failure(f), Failed: failed}
	if err == errLoading {
		answer.Loading = s.loading.snapshot()
	}
	writeFailure(c.W, f, answer)
	return err
}

// ready returns why no request can be answered; nil: requests can be.
func (s *Server) ready() error {
	switch {
	case s.draining.Load():
		return errDraining
	case s.models.Load() == nil:
		return errLoading
	}
	return nil
}

// failedModels returns the names of the models whose engines have failed.
func (s *Server) failedModels() (names []string) {
	for _, m := range s.loaded() {
		if m.Engine.Failed() != nil {
			names = append(names, m.Name)
		}
	}
	return names
}
