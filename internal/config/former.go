package config

import (
	"fmt"

	"github.com/rs/zerolog"
)

// formerKeys maps former names of keys to their present ones. Files and the
// environment may use a former name for one more version, with a warning.
var formerKeys = map[string]string{
	"engine.hand_over":      "engine.flush_interval",
	"engine.prompt_stretch": "engine.prefill_slowdown",
	"engine.search_stretch": "engine.background_slowdown",
}

// goneKeys says why keys of former versions have no meaning any more. A file may have
// them for one more version, with a warning.
var goneKeys = map[string]string{
	"hexagon.overflow":      "the host computes all rows beyond an expert's capacity",
	"engine.spare_slowdown": "plain answers get no further candidates in idle lanes",
	"server.mcp_servers":    "messages for servers of tools are not passed on; whoever uses tools reaches them itself",
	"search.fill":           "plain answers get no further candidates in idle lanes; server.default_scaling gives them a search",
}

// current returns the present name of a key. from is the place where it is set.
func (s *settings) current(key, from string) string {
	now, former := formerKeys[key]
	if !former {
		return key
	}
	s.config.warnings = append(s.config.warnings, fmt.Sprintf("%s: %s is called %s now; the former name will not be accepted for much longer", from, key, now))
	return now
}

// Warn logs problems that do not keep the configuration from being used.
func (c *Config) Warn(log zerolog.Logger) {
	for _, w := range c.warnings {
		log.Warn().Msg(w)
	}
}
