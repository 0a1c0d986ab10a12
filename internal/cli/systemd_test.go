//go:build unix

package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestSystemdIsToldOfAServersLife(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	hear := func(want string) {
		t.Helper()
		b := make([]byte, 256)
		if n, err := socket.Read(b); err != nil || string(b[:n]) != want {
			t.Fatalf("systemd is told %q, %v, want %q", b[:n], err, want)
		}
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "600000000")
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
	hear(daemon.SdNotifyReady)
	hear(daemon.SdNotifyWatchdog)
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	hear(daemon.SdNotifyStopping)
}

func TestAServerTakesThePortThatSystemdHasOpened(t *testing.T) {
	port, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	fd, err := port.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := underSystemd(t, fd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	res, err := http.Get("http://" + port.Addr().String() + "/healthz") // waits until the server takes it
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %s", res.Status)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

func TestSocketsThatNoServerCanTakeAreRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd, err := l.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	for want, sockets := range map[string][]*os.File{"passed 2 sockets": {fd, fd}, "not TCP": {fd}} {
		cmd := underSystemd(t, sockets...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%d sockets: %v, %s, want %q", len(sockets), err, out, want)
		}
	}
}

// underSystemd is a server that systemd starts with sockets, which its own address, nobody's,
// gives way to. systemd knows the number of a process before its program runs; a shell does too.
func underSystemd(t *testing.T, sockets ...*os.File) *exec.Cmd {
	t.Helper()
	cmd := process(t, "serve", "--addr", "192.0.2.1:1", "--model", "lutra-tiny-s")
	script := fmt.Sprintf(`LISTEN_FDS=%d LISTEN_PID=$$ exec "$0" "$@"`, len(sockets))
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.ExtraFiles = "/bin/sh", sockets
	return cmd
}

func TestAServerIsNotKeptAliveWhoseEngineTakesNoStepOrWhoseOtherWorkDoesNotMove(t *testing.T) {
	m := &toy.Model{Vocab: 4, Context: 64}
	e := batcher.New(m, m.NewCache(4, 16), batcher.DefaultOptions())
	stuck := false
	s := supervised{log: zerolog.Nop(), stuck: func() bool { return stuck }}
	ask := func(goesOn bool) {
		t.Helper()
		if fault := s.fault([]*batcher.Engine{e}); (fault == "") != goesOn {
			t.Errorf("fault = %q, want none: %v", fault, goesOn)
		}
	}
	ask(true)
	ask(true) // an engine without work may take none
	seq, err := e.Open(t.Context(), []int32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	defer seq.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = seq.Logits(gone) // asks, and does not wait
	ask(true)               // there was no work when it was last asked
	ask(false)
	if _, err := e.Step(); err != nil {
		t.Fatal(err)
	}
	ask(true)
	stuck = true
	ask(false)
}
