package config

import (
	"fmt"

	"github.com/rs/zerolog"
)

// formerKeys are keys that have another name by now, under which files and the
// environment may still set them. Each is accepted with a warning, for one version.
var formerKeys = map[string]string{
	"engine.hand_over":      "engine.flush_interval",
	"engine.prompt_stretch": "engine.prefill_slowdown",
	"engine.search_stretch": "engine.background_slowdown",
}

// current is the name that a key has now. from is the place where it is set.
func (s *settings) current(key, from string) string {
	now, former := formerKeys[key]
	if !former {
		return key
	}
	s.config.warnings = append(s.config.warnings, fmt.Sprintf("%s: %s is called %s now; the former name will not be accepted for much longer", from, key, now))
	return now
}

// Warn logs what is amiss with a configuration that can be used all the same.
func (c *Config) Warn(log zerolog.Logger) {
	for _, w := range c.warnings {
		log.Warn().Msg(w)
	}
}
