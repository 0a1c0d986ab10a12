package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/windows/svc"
)

// underManager runs a command, as a service where Windows' service control manager has started the
// process. A service has no terminal: what it writes to errOut goes to a file.
func underManager(ctx context.Context, errOut io.Writer, run func(errOut io.Writer) int) int {
	managed, err := svc.IsWindowsService()
	if err != nil || !managed {
		return run(errOut)
	}
	log := &serviceLog{path: filepath.Join(os.Getenv("ProgramData"), "Lutra", "lutra.log"), largest: 16 << 20}
	defer log.Close()
	s := &managedService{run: func() int { return run(log) }, stop: func() { stopperOf(ctx).take(stopSignal{syscall.SIGTERM}) }}
	if err := svc.Run("lutra", s); err != nil {
		fmt.Fprintln(log, "lutra: the service control manager:", err)
		return max(1, s.status)
	}
	return s.status
}

// managedService answers the service control manager for a command.
type managedService struct {
	run    func() int // the command; it returns the exit status, after stop if not before
	stop   func()     // asks the command to drain and end
	status int        // with which it has ended
}

// stopHint is the time, in milliseconds, that a service tells the manager it may drain, as TimeoutStopSec= of
// lutra.service.
const stopHint = 40_000

// Execute runs the command until it ends, by itself or at a request to stop. The service counts as running
// from the start: its models may take an hour to be downloaded, and /readyz tells. It implements
// svc.Handler.
func (s *managedService) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (specific bool, code uint32) {
	ended := make(chan int, 1)
	go func() { ended <- s.run() }()
	status := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptPreShutdown}
	changes <- status
	for {
		select {
		case s.status = <-ended:
			return s.status != 0, uint32(s.status)
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				changes <- status
			case svc.Stop, svc.PreShutdown:
				status = svc.Status{State: svc.StopPending, WaitHint: stopHint} // accepts no second request
				changes <- status
				s.stop()
			}
		}
	}
}

// serviceLog is the file of a service's log. At largest bytes it becomes path.1, whose former
// contents go. Lines that cannot be written are lost: the server serves on.
type serviceLog struct {
	path    string
	largest int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// Write appends a line, or several.
func (l *serviceLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && l.size+int64(len(line)) > l.largest {
		l.close()
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return 0, err
		}
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

func (l *serviceLog) open() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

func (l *serviceLog) close() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// Close closes the file.
func (l *serviceLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
	return nil
}
