package config

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/lutra-lm/lutra/internal/kvevents"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/internal/zmtp"
)

// Publishing says where the events of the models' caches go; nil: nowhere. The error begins
// with the key at fault.
func (cfg *Config) Publishing() (*kvevents.Options, error) {
	c := &cfg.KV
	if c.Events == "" {
		if c.Replay != "" {
			return nil, fmt.Errorf("kv.replay: there is nothing to replay without kv.events")
		}
		return nil, nil
	}
	if !c.Prefix {
		return nil, fmt.Errorf("kv.events: there are no prefixes to tell of while kv.prefix is false")
	}
	var opt kvevents.Options
	var err error
	if opt.Events, err = zmtp.ParseEndpoint(c.Events); err != nil {
		return nil, fmt.Errorf("kv.events: %w", err)
	}
	if c.Replay != "" {
		replay, err := zmtp.ParseEndpoint(c.Replay)
		if err != nil {
			return nil, fmt.Errorf("kv.replay: %w", err)
		}
		opt.Replay = &replay
	}
	host, _ := os.Hostname()
	opt.Pod = cmp.Or(c.Pod, os.Getenv("POD_IP"), host, "localhost")
	if strings.ContainsAny(opt.Pod, "@ ") {
		return nil, fmt.Errorf("kv.pod: %q has a space or an @, which divides the parts of a topic", usage.Brief(opt.Pod))
	}
	for _, m := range cfg.Models {
		if name := m.APIName(); strings.Contains(name, "@") {
			return nil, fmt.Errorf("kv.events: the name of model %q has an @, which divides the parts of a topic; give it another one", usage.Brief(name))
		}
	}
	return &opt, nil
}
