package jsonwrite

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
