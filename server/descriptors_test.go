package server

import (
	"bytes"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/models/toy"
)

// exhausted is a listener without free file descriptors until a time.
type exhausted struct {
	net.Listener
	until time.Time
	err   error
}

func (l exhausted) Accept() (net.Conn, error) {
	if time.Now().Before(l.until) {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.err)}
	}
	return nil, net.ErrClosed
}

func TestConnectionsWaitForFileDescriptorsAndTheLogSaysSoNowAndThen(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			var failed atomic.Int64
			l := &patientListener{Listener: exhausted{until: time.Now().Add(2*warnAgain + time.Second), err: err}, log: zerolog.New(&log), failed: &failed}
			if _, err := l.Accept(); err != net.ErrClosed {
				t.Errorf("Accept() = %v, want what the listener says then", err)
			}
			if n := strings.Count(log.String(), "out of file descriptors"); n != 3 || !strings.Contains(log.String(), `"level":"warn"`) {
				t.Errorf("%d warnings in two periods and a bit:\n%s", n, &log)
			}
			if failed.Load() < 100 {
				t.Errorf("%d failures are counted", failed.Load())
			}
		})
	}
}

func TestALimitOfFilesBelowTheConnectionsIsSaid(t *testing.T) {
	for _, c := range []struct {
		connections int
		limit       uint64
		warns       bool
	}{{4096, 1024, true}, {4096, 4096, true}, {4096, 1 << 20, false}, {900, 1024, false}, {0, 1024, false}, {4096, 0, false}} {
		var log bytes.Buffer
		opt := DefaultOptions()
		opt.MaxConnections, opt.Log = c.connections, zerolog.New(&log)
		warnOfFiles(opt.Log, c.limit, opt.MaxConnections)
		if got := strings.Contains(log.String(), "limit of open files is too low"); got != c.warns {
			t.Errorf("%d connections and %d files: %q", c.connections, c.limit, &log)
		}
	}
}

func TestRunningOutOfFilesIsCounted(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.outOfFiles.Add(3)
	_, _, answer := f.do("GET", "/metrics", nil)
	if got := metric(t, string(answer), "lutra_out_of_files_total", ""); got != 3 {
		t.Errorf("%v, want 3", got)
	}
}
