package server

import (
	"sync"
)

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

// snapshot is a copy, never nil.
func (l *loading) snapshot() []modelProgress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]modelProgress{}, l.models...)
}
