package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server"
)

// inherited returns the listener that systemd has opened (sd_listen_fds(3)); nil: none.
func inherited() (net.Listener, error) {
	listeners, err := activation.Listeners()
	if err != nil || len(listeners) == 0 {
		return nil, err
	}
	if len(listeners) > 1 {
		for _, l := range listeners {
			if l != nil {
				l.Close()
			}
		}
		return nil, fmt.Errorf("systemd has passed %d sockets, want one: ListenStream= of lutra.socket", len(listeners))
	}
	if _, ok := listeners[0].(*net.TCPListener); !ok {
		if listeners[0] != nil {
			listeners[0].Close()
		}
		return nil, errors.New("systemd has passed a socket that is not TCP: ListenStream= of lutra.socket wants HOST:PORT")
	}
	return listeners[0], nil
}

// open takes the listener of systemd, whose address the options then have, or listens.
func open(o *server.Options) (net.Listener, error) {
	l, err := inherited()
	if err != nil {
		return nil, err
	}
	if l == nil {
		return listen(o.Addr)
	}
	o.Addr = l.Addr().String()
	return l, nil
}

// supervised tells systemd of the server (sd_notify(3)): that it is ready, that it drains,
// and, as often as WatchdogSec= wants, that it goes on. Without systemd it does nothing.
type supervised struct {
	log   zerolog.Logger
	stuck func() bool               // work beside the engines does not move
	steps map[*batcher.Engine]int64 // of engines that had work when they were last asked
}

// tell sends a message, such as daemon.SdNotifyReady.
func (s *supervised) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn().Err(err).Str("state", state).Msg("systemd was not told")
	}
}

// watch tells systemd that the server is alive, until ctx ends. It stays silent if an engine has work and has taken
// no step since the last time. It also does if work beside the engines does not move, since long prompts would then
// wait until a restart. engines returns the present ones.
func (s *supervised) watch(ctx context.Context, engines func() []*batcher.Engine) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn().Err(err).Msg("systemd's watchdog is not told")
	}
	if err != nil || limit == 0 {
		return
	}
	tick := time.NewTicker(limit / 2)
	defer tick.Stop()
	for {
		if fault := s.fault(engines()); fault == "" {
			s.tell(daemon.SdNotifyWatchdog)
		} else {
			s.log.Error().Msg(fault + ": systemd will restart the server if that goes on")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// fault says what has not gone on since the last call; empty: all does.
func (s *supervised) fault(engines []*batcher.Engine) string {
	busy, still := map[*batcher.Engine]int64{}, false
	for _, e := range engines {
		if !e.Busy() || e.Failed() != nil {
			continue
		}
		steps := e.Stats().Steps
		before, was := s.steps[e]
		still = still || was && before == steps
		busy[e] = steps
	}
	s.steps = busy
	switch {
	case still:
		return "an engine takes no steps"
	case s.stuck():
		return "work beside the engines does not move"
	}
	return ""
}
