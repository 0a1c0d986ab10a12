//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/engines"
)

// own is a server in a process of its own.
type own struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	log  chan string // its lines from "ready" on; closed when it has ended
	last []string    // lines that wait has read
}

// startServe runs lutra serve until it is ready.
func startServe(t *testing.T, env ...string) *own {
	t.Helper()
	return startServeOf(t, []string{"--addr", "127.0.0.1:0", "--model", "lutra-tiny-s"}, env...)
}

// startServeOf is startServe with other arguments.
func startServeOf(t *testing.T, args []string, env ...string) *own {
	t.Helper()
	cmd := process(t, append([]string{"serve"}, args...)...)
	cmd.Env = append(cmd.Env, append(env, "LUTRA_LOG_FORMAT=json")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s := &own{t: t, cmd: cmd, log: make(chan string, 1000)}
	go func() {
		defer close(s.log)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.log <- lines.Text()
		}
	}()
	var line struct{ Addr string }
	if err := json.Unmarshal([]byte(s.wait(`"message":"serving"`)), &line); err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + line.Addr
	s.wait("ready on")
	return s
}

// wait reads the log up to a line that holds text.
func (s *own) wait(text string) string {
	s.t.Helper()
	for line := range s.log {
		s.last = append(s.last, line)
		if strings.Contains(line, text) {
			return line
		}
	}
	s.t.Fatalf("the log ended without %q:\n%s", text, strings.Join(s.last, "\n"))
	return ""
}

func (s *own) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the process and returns its exit status.
func (s *own) ends() int {
	s.t.Helper()
	for range s.log { // else it could not write
	}
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

func (s *own) get(path string) *http.Response {
	s.t.Helper()
	resp, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func TestCtrlCStopsAnIdleServerWithoutWaiting(t *testing.T) {
	s := startServe(t, "LUTRA_SERVER_LAME_DUCK=1h", "LUTRA_SERVER_DRAIN_TIMEOUT=2h")
	s.get("/v1/models") // the connection stays open, unused
	s.signal(os.Interrupt)
	if line := s.wait("stopping"); !strings.Contains(line, `"lame_duck_ms":0`) {
		t.Errorf("log %s, want no lame-duck time", line)
	}
	if status := s.ends(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
}

func TestASignalRefusesNewRequestsBeforeThePortClosesAndASecondOneEndsAtOnce(t *testing.T) {
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(first) { // as nohup has it, and the server too then
			continue
		}
		s := startServe(t, "LUTRA_SERVER_LAME_DUCK=1h", "LUTRA_SERVER_DRAIN_TIMEOUT=2h")
		s.signal(first)
		s.wait("stopping")
		for path, want := range map[string]int{"/readyz": 503, "/health": 503, "/healthz": 200} {
			if resp := s.get(path); resp.StatusCode != want || want == 503 && resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %d with Retry-After %q, want %d", path, resp.StatusCode, resp.Header.Get("Retry-After"), want)
			}
		}
		resp, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("a new request: %d, want 503 with Retry-After", resp.StatusCode)
		}
		s.signal(syscall.SIGINT)
		s.wait("second signal")
		if status := s.ends(); status != 130 {
			t.Errorf("exit status %d after %v and SIGINT, want 130", status, first)
		}
	}
}

func TestARequestToEndThatComesAgainAtOnceIsOneRequest(t *testing.T) {
	const term, hup, interrupt = syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT
	type at struct {
		signal syscall.Signal
		after  time.Duration // since the first
	}
	for _, c := range []struct {
		signals []at
		status  int // 0: the process goes on
	}{
		{[]at{{term, 0}}, 0},
		{[]at{{term, 0}, {term, time.Millisecond}}, 0},
		{[]at{{term, 0}, {term, 999 * time.Millisecond}, {hup, 999 * time.Millisecond}}, 0},
		{[]at{{hup, 0}, {term, time.Millisecond}}, 0},
		{[]at{{term, 0}, {term, time.Second}}, 143},
		{[]at{{term, 0}, {term, time.Millisecond}, {term, time.Minute}}, 143},
		{[]at{{hup, 0}, {hup, time.Minute}}, 129},
		{[]at{{term, 0}, {interrupt, time.Millisecond}}, 130},
		{[]at{{interrupt, 0}, {interrupt, time.Millisecond}}, 130},
		{[]at{{interrupt, 0}, {term, time.Millisecond}}, 143},
	} {
		clock, status, said := time.Unix(0, 0), 0, 0
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &stopper{end: cancel, now: func() time.Time { return clock }, exit: func(n int) { status = n }}
		p.atSecond(func(stopSignal) { said++ })
		for _, s := range c.signals {
			clock = time.Unix(0, 0).Add(s.after)
			p.take(stopSignal{s.signal})
		}
		var by stopSignal
		if !errors.As(context.Cause(ctx), &by) || by.Signal != c.signals[0].signal {
			t.Errorf("%v: the context has ended by %v, want the first", c.signals, context.Cause(ctx))
		}
		if status != c.status || said != min(status, 1) {
			t.Errorf("%v: exit status %d, said %d times, want %d", c.signals, status, said, c.status)
		}
	}
}

func TestAServerEndsWithoutWaitingForAModelThatLoads(t *testing.T) {
	done := make(chan struct{})
	close(done)
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	r, err := loadUnless(done, func() (*engines.Runtime, error) {
		<-never
		return nil, errors.New("late")
	})
	if r != nil || err != nil {
		t.Errorf("loadUnless() = %v, %v, want nothing", r, err)
	}
}
