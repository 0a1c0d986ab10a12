package config

import (
	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/settings"
)

// formerNames are the keys of former versions.
var formerNames = settings.Names{
	Former: map[string]string{
		"engine.hand_over":      "engine.flush_interval",
		"engine.prompt_stretch": "engine.prefill_slowdown",
		"engine.search_stretch": "engine.background_slowdown",
	},
	Gone: map[string]string{
		"hexagon.overflow":      "the host computes all rows beyond an expert's capacity",
		"engine.spare_slowdown": "plain answers get no further candidates in idle lanes",
		"server.mcp_servers":    "messages for servers of tools are not passed on; whoever uses tools reaches them itself",
		"search.fill":           "plain answers get no further candidates in idle lanes; server.default_scaling gives them a search",
	},
}

// Warn logs problems that do not keep the configuration from being used.
func (c *Config) Warn(log zerolog.Logger) {
	for _, w := range c.warnings {
		log.Warn().Msg(w)
	}
}
