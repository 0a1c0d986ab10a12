package jsonwrite

import (
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// The events that end a stream are larger than what gathers, and each takes longer to
// make than the silence after which a keep-alive chunk is due.
func TestNoKeepAliveComesAmongTheLastEventsOrAfterThem(t *testing.T) {
	var alive atomic.Int32
	kept := func() any { alive.Add(1); return "kept" }
	w := httptest.NewRecorder()
	out := OpenEvents(w, true, time.Minute, time.Millisecond, kept, func() {})
	for alive.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	last := func() any {
		time.Sleep(5 * time.Millisecond)
		return strings.Repeat("x", maxPending)
	}
	var before int32
	out.End(func() any { before = alive.Load(); return List{{Data: last()}, {Data: last()}} })
	time.Sleep(20 * time.Millisecond)
	out.Close()
	if got := alive.Load(); got != before {
		t.Errorf("%d keep-alive chunks came after the end began", got-before)
	}
	if lines := strings.Fields(w.Body.String()); len(lines) != int(before)+2 || len(lines[len(lines)-1]) < maxPending {
		t.Errorf("%d events were written, not %d keep-alive chunks and the two last", len(lines), before)
	}
}

// The timer of a flush fires while an event is made that is flushed at once.
func TestAFlushThatIsOvertakenIsNotASilence(t *testing.T) {
	w := httptest.NewRecorder()
	out := OpenEvents(w, true, time.Minute, time.Hour, func() any { return "kept" }, func() {})
	out.Later()
	out.Make(func() any {
		time.Sleep(2 * flushDelay)
		return strings.Repeat("x", maxPending)
	})
	time.Sleep(flushDelay)
	out.Close()
	if lines := strings.Fields(w.Body.String()); len(lines) != 1 {
		t.Errorf("%d events were written, not the one", len(lines))
	}
}

func TestAStreamThatBeginsWithNothingIsNotKeptAliveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		out := OpenEvents(w, true, time.Minute, time.Second, func() any { return "kept" }, func() {})
		out.Later()
		time.Sleep(2 * flushDelay)
		synctest.Wait()
		out.mu.Lock() // for the race detector
		if !w.Flushed || w.Body.Len() > 0 {
			t.Errorf("flushed: %v, with %q; want the headers alone", w.Flushed, w.Body)
		}
		out.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		out.Close()
		if got := w.Body.String(); got != "\"kept\"\n" {
			t.Errorf("after a silence comes %q", got)
		}
	})
}

func TestAPanicOfAKeepAliveIsThatOfTheHandler(t *testing.T) {
	boom := func() any { panic("boom") }
	for what, end := range map[string]func(gone func()) func(){
		"a stream": func(gone func()) func() {
			return OpenEvents(httptest.NewRecorder(), true, time.Minute, time.Second, boom, gone).Close
		},
		"the end of a stream": func(gone func()) func() {
			out := OpenEvents(httptest.NewRecorder(), true, time.Minute, time.Second, boom, gone)
			return func() { out.End(func() any { return nil }) }
		},
		"a wait": func(gone func()) func() {
			out := Wait(httptest.NewRecorder(), time.Minute, time.Second, nil, boom)
			gone()
			return func() { out.End() }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			gone := false
			end := end(func() { gone = true })
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if !gone {
				t.Errorf("%s: nobody is told that it has ended", what)
			}
			var p *parallel.Panic
			if err := parallel.Try(func() error { end(); return nil }); !errors.As(err, &p) || p.Value != "boom" {
				t.Errorf("%s ends with %v, want the panic of its timer", what, err)
			}
		})
	}
}
