package cli

import (
	"io"
	"time"

	"github.com/rs/zerolog"
)

func (c LogConfig) level() (zerolog.Level, error) { return zerolog.ParseLevel(c.Level) }

// logger writes to w: for people on a terminal, JSON lines elsewhere. The
// configuration has been validated.
func (c LogConfig) logger(w io.Writer) zerolog.Logger {
	level, _ := c.level() // Validate has parsed it
	if c.Format == "console" || c.Format == "auto" && isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}
