package tts

import (
	"context"
	"iter"
)

// Interleave runs several sources at once and yields their deltas as they
// come. The first error ends all of them. It returns when all have ended.
func Interleave(ctx context.Context, sources ...func(context.Context) iter.Seq2[Delta, error]) iter.Seq2[Delta, error] {
	if len(sources) == 1 {
		return sources[0](ctx)
	}
	return func(yield func(Delta, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		events := make(chan event)
		for _, source := range sources {
			go pump(source(inner), events, inner.Done())
		}
		open := len(sources)
		defer func() {
			cancel()
			for open > 0 { // pumps give up sending, and say that they have ended
				if (<-events).kind != delivered {
					open--
				}
			}
		}()
		for open > 0 {
			e := <-events
			switch e.kind {
			case ended:
				open--
			case panicked:
				open--
				panic(e.panic)
			case delivered:
				if !yield(e.delta, e.err) || e.err != nil {
					return
				}
			}
		}
		if err := ctx.Err(); err != nil { // a pump may have given up before it could say so
			yield(Delta{}, err)
		}
	}
}

type event struct {
	kind  eventKind
	delta Delta
	err   error
	panic any
}

type eventKind uint8

const (
	delivered eventKind = iota
	ended
	panicked // carried to the reader's goroutine, where its caller can recover
)

// pump sends a source's deltas until it ends or done closes; its last event
// says that it has ended, and always finds a reader.
func pump(source iter.Seq2[Delta, error], events chan<- event, done <-chan struct{}) {
	last := event{kind: ended}
	defer func() {
		if p := recover(); p != nil {
			last = event{kind: panicked, panic: p}
		}
		events <- last
	}()
	for d, err := range source {
		select {
		case events <- event{delta: d, err: err}:
		case <-done:
			return
		}
	}
}
