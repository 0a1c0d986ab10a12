package kvevents

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/internal/zmtp"
)

// Settings say where the events of caches go.
type Settings struct {
	Events string `yaml:"events"` // tcp://HOST:PORT of the ZeroMQ socket that tells routers of prefixes; empty: none
	Replay string `yaml:"replay"` // tcp://HOST:PORT where they ask for what they missed; empty: nowhere
	Pod    string `yaml:"pod"`    // the address by which they know this process; empty: $POD_IP, or the host's name
}

// Options returns where the events of the caches of models go, if these reuse prefixes; nil: nowhere. The error
// begins with the setting at fault.
func (s *Settings) Options(prefixes bool, models []string) (*Options, error) {
	if s.Events == "" {
		if s.Replay != "" {
			return nil, errors.New("replay: there is nothing to replay without kv.events")
		}
		return nil, nil
	}
	if !prefixes {
		return nil, errors.New("events: there are no prefixes to tell of while kv.prefix is false")
	}
	var opt Options
	var err error
	if opt.Events, err = zmtp.ParseEndpoint(s.Events); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	if s.Replay != "" {
		replay, err := zmtp.ParseEndpoint(s.Replay)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		opt.Replay = &replay
	}
	host, _ := os.Hostname()
	opt.Pod = cmp.Or(s.Pod, os.Getenv("POD_IP"), host, "localhost")
	if strings.ContainsAny(opt.Pod, "@ ") {
		return nil, fmt.Errorf("pod: %q has a space or an @, which divides the parts of a topic", usage.Brief(opt.Pod))
	}
	for _, name := range models {
		if strings.Contains(name, "@") {
			return nil, fmt.Errorf("events: the name of model %q has an @, which divides the parts of a topic; give it another one", usage.Brief(name))
		}
	}
	return &opt, nil
}
