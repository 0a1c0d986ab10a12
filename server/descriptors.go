package server

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

const (
	// acceptAgain is the time that a listener waits for a file descriptor to become free.
	acceptAgain = 50 * time.Millisecond
	// warnAgain is the time between two warnings about it.
	warnAgain = 10 * time.Second
	// otherFiles is the number of files that a server has open besides its connections: models,
	// the poller and the log.
	otherFiles = 64
)

// patientListener accepts connections. Where the process or the system has run out of file
// descriptors it waits until one is free, with a warning now and then. To close would end the
// server, and to try again at once would fill the log.
type patientListener struct {
	net.Listener
	log    zerolog.Logger
	failed *atomic.Int64 // counts the times that none was free
	warned time.Time
}

// Accept implements net.Listener.
func (l *patientListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			return c, err
		}
		l.failed.Add(1)
		if now := time.Now(); now.Sub(l.warned) >= warnAgain {
			l.warned = now
			l.log.Warn().Err(err).Uint64("limit", fileLimit()).Msg("out of file descriptors: new connections wait; raise the limit of open files (ulimit -n, LimitNOFILE) or lower server.max_connections")
		}
		time.Sleep(acceptAgain)
	}
}

// warnOfFiles says at the start that a limit of limit open files, 0 for none, is too low
// for most connections, 0 for any number.
func warnOfFiles(log zerolog.Logger, limit uint64, most int) {
	need := uint64(most + otherFiles)
	if limit == 0 || most == 0 || limit >= need {
		return
	}
	log.Warn().Uint64("limit", limit).Uint64("needed", need).Int("max_connections", most).
		Msg("the limit of open files is too low for server.max_connections: raise it (ulimit -n, LimitNOFILE) or lower that")
}
