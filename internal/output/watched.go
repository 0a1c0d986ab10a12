package output

import (
	"context"
	"io"
)

// Watched writes until its context ends, and shows on a meter how much of the total has been
// written.
type Watched struct {
	Context context.Context // whose cause is the error once it has ended
	W       io.Writer
	Meter   *Meter
	Done    int64 // bytes
	Total   int64
}

func (w *Watched) Write(p []byte) (int, error) {
	if w.Context.Err() != nil {
		return 0, context.Cause(w.Context)
	}
	n, err := w.W.Write(p)
	w.Done += int64(n)
	w.Meter.Set(min(w.Done, w.Total), w.Total)
	return n, err
}
