package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/windows/svc"

	"github.com/lutra-lm/lutra/server"
)

// managed runs a service as the manager does: it returns the manager's ends, and what Execute returns.
func managed(s *managedService) (chan<- svc.ChangeRequest, <-chan svc.Status, <-chan uint32) {
	requests, changes, ended := make(chan svc.ChangeRequest), make(chan svc.Status), make(chan uint32, 1)
	go func() {
		specific, code := s.Execute(nil, requests, changes)
		if specific != (code != 0) {
			code = ^uint32(0)
		}
		ended <- code
	}()
	return requests, changes, ended
}

func TestAServiceDrainsWhereTheManagerStopsIt(t *testing.T) {
	for _, by := range []svc.Cmd{svc.Stop, svc.PreShutdown} {
		ctx, done := untilSignal(context.Background())
		drained := make(chan struct{})
		requests, changes, ended := managed(&managedService{
			run: func() int {
				<-ctx.Done()
				<-drained
				return 0
			},
			stop: func() { stopperOf(ctx).take(stopSignal{syscall.SIGTERM}) },
		})
		if s := <-changes; s.State != svc.Running || s.Accepts != svc.AcceptStop|svc.AcceptPreShutdown {
			t.Errorf("first %+v, want a running service", s)
		}
		requests <- svc.ChangeRequest{Cmd: svc.Interrogate}
		if s := <-changes; s.State != svc.Running {
			t.Errorf("asked, it is %+v", s)
		}
		requests <- svc.ChangeRequest{Cmd: by}
		if s := <-changes; s.State != svc.StopPending || s.Accepts != 0 || s.WaitHint == 0 {
			t.Errorf("at %d it is %+v, want one that stops", by, s)
		}
		<-ctx.Done()
		// As at SIGTERM, balancers have the lame-duck time; Ctrl-C has none.
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) || errors.Is(cause, server.ErrAtOnce) {
			t.Errorf("the command ends by %v", cause)
		}
		requests <- svc.ChangeRequest{Cmd: svc.Interrogate} // while it drains
		if s := <-changes; s.State != svc.StopPending {
			t.Errorf("asked, it is %+v", s)
		}
		close(drained)
		if code := <-ended; code != 0 {
			t.Errorf("it ends with %d", code)
		}
		done()
	}
}

func TestAServiceThatFailsTellsItsExitStatus(t *testing.T) {
	s := &managedService{run: func() int { return 2 }, stop: func() { t.Error("it is stopped") }}
	_, changes, ended := managed(s)
	<-changes
	if code := <-ended; code != 2 || s.status != 2 {
		t.Errorf("it ends with %d and %d, want 2", code, s.status)
	}
}

func TestTheLogOfAServiceIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "Lutra", "lutra.log")
	for range 2 { // a service that starts again goes on in the same file
		l := &serviceLog{path: path, largest: 30}
		for range 4 {
			if _, err := l.Write([]byte("ten bytes\n")); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, lines := range map[string]int{path: 2, path + ".1": 3} {
		text, err := os.ReadFile(name)
		if err != nil || strings.Count(string(text), "ten bytes\n") != lines {
			t.Errorf("%s holds %q, %v, want %d lines", name, text, err, lines)
		}
	}
}
