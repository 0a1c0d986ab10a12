package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/rs/zerolog"

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

// status is the exit status of a process that the signal has ended: 130 for SIGINT,
// 143 for SIGTERM.
func (s stopSignal) status() int {
	if n, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// untilSignal is a context that ends at the first SIGINT or SIGTERM, its cause.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ignore := onSignals(func(s stopSignal) { cancel(s) })
	return ctx, func() {
		ignore()
		cancel(nil)
	}
}

// exitAtSecondSignal ends the process at a second SIGINT or SIGTERM, whatever the
// first has begun.
func exitAtSecondSignal(log zerolog.Logger) (stop func()) {
	first := true
	return onSignals(func(s stopSignal) {
		if first {
			first = false
			return
		}
		log.Warn().Str("signal", s.String()).Msg("second signal: ending at once")
		os.Exit(s.status())
	})
}

// onSignals calls do with each SIGINT and SIGTERM, until stop is called.
func onSignals(do func(stopSignal)) (stop func()) {
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
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
