package residency

import (
	"errors"
	"fmt"
	"time"
)

// Errors of Hold, Load and Unload, besides *registry.NotFoundError.
var (
	ErrQueue  = errors.New("residency: too many requests wait for models")
	ErrPinned = errors.New("residency: the model is pinned")
	ErrLoaded = errors.New("residency: the model is loaded, or being loaded")
	ErrAbsent = errors.New("residency: the model is not loaded")
	ErrClosed = errors.New("residency: the server is shutting down")
)

// LoadError says why a model could not be loaded. It is tried again by the first request
// that comes after Retry.
type LoadError struct {
	Model string
	Err   error
	Retry time.Time
}

func (e *LoadError) Error() string { return fmt.Sprintf("residency: loading %s: %v", e.Model, e.Err) }
func (e *LoadError) Unwrap() error { return e.Err }

// RoomError says that a model needs more bytes than there would be if all had gone that may.
type RoomError struct {
	Model      string
	Need, Room int64
}

func (e *RoomError) Error() string {
	return fmt.Sprintf("residency: %s needs %d bytes, and there is room for %d", e.Model, e.Need, e.Room)
}
