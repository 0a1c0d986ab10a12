package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/lutra-lm/lutra/server"
)

// stopSignal is the cause of a context that a signal has ended.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return s.String() + " signal received" }

// Is makes it a context.Canceled, as the causes of package signal are. SIGINT comes
// from a person at a terminal, who need not wait for the lame-duck time.
func (s stopSignal) Is(target error) bool {
	return target == context.Canceled || target == server.ErrAtOnce && s.Signal == os.Interrupt
}

// status returns the exit status of a process that the signal has ended: 130 for SIGINT,
// 143 for SIGTERM, 129 for SIGHUP.
func (s stopSignal) status() int {
	if n, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// stopper ends a context at the first signal, and the process at a second one.
type stopper struct {
	end    context.CancelCauseFunc
	second func(stopSignal) // is called before the process ends
	hangup func() bool      // takes a SIGHUP, or tells that it is one to end; nil: each is
	exit   func(status int)
	now    func() time.Time

	mu    sync.Mutex
	first stopSignal
	at    time.Time // of the first signal
	stop  func()    // leaves signals to others
}

// echoTime is the time within which a signal's echo comes: timeout(1) signals its child, and
// then the group that the child is in; systemd may add a SIGHUP.
const echoTime = time.Second

// take acts on a signal. A request to end that comes again at once is one request; a
// second Ctrl-C is a person's second wish.
func (p *stopper) take(s stopSignal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.Signal == syscall.SIGHUP && p.first.Signal == nil && p.hangup != nil && p.hangup():
	case p.first.Signal == nil:
		p.first, p.at = s, p.now()
		p.end(s)
	case s.Signal != os.Interrupt && p.first.Signal != os.Interrupt && p.now().Sub(p.at) < echoTime:
	default:
		p.second(s)
		p.exit(s.status())
	}
}

// atSecond has the process call do before a second signal ends it.
func (p *stopper) atSecond(do func(stopSignal)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.second = do
}

// atHangup has do take each SIGHUP that it can.
func (p *stopper) atHangup(do func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangup = do
}

// stopperKey finds the stopper of a context.
type stopperKey struct{}

// stopperOf returns the stopper that ends ctx, or one that does nothing.
func stopperOf(ctx context.Context) *stopper {
	if p, ok := ctx.Value(stopperKey{}).(*stopper); ok {
		return p
	}
	return &stopper{stop: func() {}}
}

// untilSignal returns a context that ends at the first SIGINT, SIGTERM or SIGHUP, its cause.
// A second signal ends the process, until stop is called.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	p := &stopper{end: cancel, exit: os.Exit, now: time.Now, second: func(s stopSignal) { fmt.Fprintln(os.Stderr, "second signal: ending at once") }}
	p.stop = onSignals(p.take)
	return context.WithValue(ctx, stopperKey{}, p), func() {
		p.stop()
		cancel(nil)
	}
}

// onSignals calls do with each SIGINT, SIGTERM and SIGHUP, until stop is called. A
// SIGHUP that nohup(1) has the process ignore stays ignored.
func onSignals(do func(stopSignal)) (stop func()) {
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for {
			select {
			case s := <-signals:
				do(stopSignal{s})
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
	})
}
