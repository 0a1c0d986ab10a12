package cli

import (
	"io"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
)

// Loading shows which model's file is being read, and how far. Embedded models, which
// are there at once, are not shown.
type Loading struct {
	W     io.Writer
	model string // shown last; its meter is nil once it is there
	meter *output.Meter
}

// Show shows progress; it has the form of engines.Watcher.Loading.
func (l *Loading) Show(model string, done, total int64) {
	if total == 0 { // it has not begun
		if l.model == model {
			l.model = ""
		}
		return
	}
	if config.IsEmbedded(model) {
		return
	}
	if l.model != model {
		l.End()
		l.model, l.meter = model, &output.Meter{W: l.W, What: "loading " + output.OneLine(model), Bytes: true, Early: true}
	}
	if l.meter == nil {
		return
	}
	l.meter.Set(done, total)
	if done >= total {
		l.End()
	}
}

// End takes the bar away: everything has been read, or nothing more will be.
func (l *Loading) End() {
	if l.meter != nil {
		l.meter.End()
		l.meter = nil
	}
}
