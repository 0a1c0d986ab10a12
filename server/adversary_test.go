package server

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/adversary"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// The long run, against a process with bounded memory and with a bar for the
// time that questions take, is internal/adversary's own test.
func TestHostileClientsLeaveNothingBehindAndChangeNoAnswer(t *testing.T) {
	sweep.Full(t)
	f := real(t, nil)
	report, err := adversary.Run(t.Context(), adversary.Options{URL: f.url, Clients: sweep.Of(t, 8, 64), Plain: 2, Rounds: 2, BodySize: sweep.Of(t, 1<<18, 1<<20),
		Patience: 100 * time.Millisecond, Limit: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", report)
	if len(report.Stuck) > 0 {
		t.Errorf("requests that never ended: %v", report.Stuck)
	}
	for _, failure := range report.Failed {
		t.Error(failure)
	}
	if report.Refused > 0 {
		t.Errorf("%d of %d questions were refused, want room for them whatever others send", report.Refused, report.Asked)
	}
	f.settle()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for f.admitter.memory.Bytes() != 0 || f.admitter.places.Taken() != 0 { // handlers whose clients have left end in a moment
		if ctx.Err() != nil {
			t.Fatalf("%d bytes and %d places are held after the last request", f.admitter.memory.Bytes(), f.admitter.places.Taken())
		}
		runtime.Gosched()
	}
}
