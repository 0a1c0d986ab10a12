package server

import (
	"sync"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/api"
)

// note notes that done of total bytes of a model have been read.
func (l *loading) note(model string, done, total int64) {
	p := modelProgress{Model: model}
	if total > 0 {
		p.Progress = min(1, float64(done)/float64(total))
	}
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
func (a *admin) readyz(c *api.Call) error { return a.readiness(c, "ready") }

// health is readyz in llama.cpp's word, which its clients look for.
func (a *admin) health(c *api.Call) error { return a.readiness(c, "ok") }

func (a *admin) readiness(c *api.Call, status string) error {
	err := a.models.ready()
	failed := a.models.failed()
	if err == nil && len(failed) > 0 {
		err = modelFailed(failed...)
	}
	if err == nil && cpulimit.Stuck() {
		err = errStuck
	}
	if err == nil {
		return c.JSON(map[string]string{"status": status})
	}
	f := toFault(err)
	answer := notReady{Envelope: api.Failure(f), Failed: failed}
	if err == errLoading {
		answer.Loading = a.models.loading.snapshot()
	}
	writeFailure(c.W, f, answer)
	return err
}

// loading is the progress of models that are not published yet.
type loading struct {
	mu     sync.Mutex
	models []modelProgress // in the order in which they were first heard of
}

// modelProgress is one model of /readyz while models load.
type modelProgress struct {
	Model    string  `json:"model"`
	Progress float64 `json:"progress"` // 0 to 1
}

// snapshot returns a copy, never nil.
func (l *loading) snapshot() []modelProgress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]modelProgress{}, l.models...)
}
