package workers

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Options says which servers generate candidates of this one's searches.
type Options struct {
	Workers []string      `yaml:"workers"`        // http(s)://HOST:PORT, or dns+http(s)://NAME:PORT for all addresses of a name
	Key     string        `yaml:"worker_key"`     // that they want; empty: none
	Timeout time.Duration `yaml:"worker_timeout"` // for a worker to send a further token
	Hedge   time.Duration `yaml:"worker_hedge"`   // after which one more worker begins what one has not finished; 0: never
	Check   float64       `yaml:"worker_check"`   // share of the candidates of which some tokens are generated again here
}

// DefaultOptions returns options without workers.
func DefaultOptions() Options {
	return Options{Timeout: time.Minute, Check: 0.05}
}

const (
	mostWorkers = 64            // that are listed, and addresses of a name
	longest     = 1 * time.Hour // to wait for a worker
)

// Validate reports every fault; each begins with the option's name and a colon.
func (o *Options) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(len(o.Workers) > mostWorkers, "workers: %d are more than %d", len(o.Workers), mostWorkers)
	for i, w := range o.Workers {
		_, err := parsePlace(w)
		fault(err != nil, "workers[%d]: %w", i, err)
		fault(slices.Contains(o.Workers[:i], w), "workers[%d]: %q is listed twice", i, w)
	}
	for _, c := range []byte(o.Key) {
		if c <= ' ' || c > '~' {
			fault(true, "worker_key: it has other characters than a header can carry")
			break
		}
	}
	fault(o.Timeout <= 0 || o.Timeout > longest, "worker_timeout: %v is outside 1ns..%v", o.Timeout, longest)
	fault(o.Hedge < 0 || o.Hedge > longest, "worker_hedge: %v is outside 0s..%v", o.Hedge, longest)
	fault(!(o.Check >= 0 && o.Check <= 1), "worker_check: %v is outside 0..1", o.Check)
	return errors.Join(errs...)
}
