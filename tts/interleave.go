package tts

import (
	"context"
	"iter"
)

// Interleave runs several sources at once and yields their events as they
// come. The first error ends all of them. It returns when all have ended.
func Interleave(ctx context.Context, sources ...func(context.Context) iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	if len(sources) == 1 {
		return sources[0](ctx)
	}
	return func(yield func(Event, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		arrivals := make(chan arrival)
		for _, source := range sources {
			go pump(source(inner), arrivals, inner.Done())
		}
		open := len(sources)
		defer func() {
			cancel()
			for open > 0 { // pumps give up sending, and say that they have ended
				if a := <-arrivals; a.ended {
					open--
				}
			}
		}()
		for open > 0 {
			a := <-arrivals
			switch {
			case a.panic != nil:
				open--
				panic(a.panic)
			case a.ended:
				open--
			case !yield(a.event, a.err) || a.err != nil:
				return
			}
		}
		if err := ctx.Err(); err != nil { // a pump may have given up before it could say so
			yield(Event{}, err)
		}
	}
}

// arrival is an event of one source, or its end.
type arrival struct {
	event Event
	err   error
	ended bool
	panic any // that ended it: carried to the reader's goroutine, where its caller can recover
}

// pump sends a source's events until it ends or done closes; its last event
// says that it has ended, and always finds a reader.
func pump(source iter.Seq2[Event, error], arrivals chan<- arrival, done <-chan struct{}) {
	defer func() { arrivals <- arrival{ended: true, panic: recover()} }()
	for e, err := range source {
		select {
		case arrivals <- arrival{event: e, err: err}:
		case <-done:
			return
		}
	}
}
