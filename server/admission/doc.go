// Package admission decides which requests are answered: by the client's key and
// its allowance, the number of requests under way, and the memory that they hold.
//
// It counts; nothing is allocated or awaited here.
package admission

import (
	"errors"
	"fmt"
	"time"
)

// ErrBusy says that the server has as much to do as it takes on.
var ErrBusy = errors.New("admission: the server is busy")

// MemoryError says that a request needs more memory than any may hold.
type MemoryError struct{ Most int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("admission: the request needs more than %d bytes of memory", e.Most)
}

// RateError says that a key has spent one of its Limits.
type RateError struct {
	Limit string        // as a line of a file of keys has it
	Most  int           // of it
	Wait  time.Duration // until a request would be let through
}

func (e *RateError) Error() string {
	return fmt.Sprintf("admission: %s of %d reached: again in %v", e.Limit, e.Most, e.Wait.Round(time.Millisecond))
}
