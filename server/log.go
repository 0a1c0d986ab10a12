package server

import (
	"log"
	"strings"
	"sync"

	"github.com/rs/zerolog"
)

// onceSet remembers names, up to a number that a hostile client cannot exceed.
type onceSet struct {
	mu   sync.Mutex
	seen map[string]bool
}

// first tells whether name is new.
func (o *onceSet) first(name string) bool {
	const most = 256
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[name] || len(o.seen) >= most {
		return false
	}
	if o.seen == nil {
		o.seen = make(map[string]bool)
	}
	o.seen[name] = true
	return true
}

// stdLog logs net/http's complaints, mostly of failed handshakes, at Debug.
func stdLog(l zerolog.Logger) *log.Logger {
	return log.New(debugWriter{l}, "", 0)
}

type debugWriter struct{ log zerolog.Logger }

func (d debugWriter) Write(p []byte) (int, error) {
	d.log.Debug().Str("source", "net/http").Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
