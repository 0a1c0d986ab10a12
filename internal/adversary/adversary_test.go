package adversary

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestALutraServer is the long run, for a machine that has nothing else to do:
//
//	LUTRA_ADVERSARY=64,1000 go test ./internal/adversary -run ALutraServer -v -timeout 1h
//
// drives a server of its own with 64 and then 1,000 hostile clients, for
// LUTRA_ADVERSARY_TIME (1m) each. The server may have LUTRA_ADVERSARY_MEMORY
// (2GiB in MiB: 2048) of memory, where the system can hold it to that.
func TestALutraServer(t *testing.T) {
	crowds := os.Getenv("LUTRA_ADVERSARY")
	if crowds == "" {
		t.Skip("LUTRA_ADVERSARY does not name numbers of clients")
	}
	setting := func(name, def string) string {
		if v := os.Getenv(name); v != "" {
			return v
		}
		return def
	}
	length, err := time.ParseDuration(setting("LUTRA_ADVERSARY_TIME", "1m"))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := strconv.Atoi(setting("LUTRA_ADVERSARY_MEMORY", "2048"))
	if err != nil {
		t.Fatal(err)
	}
	binary := build(t)
	for crowd := range strings.SplitSeq(crowds, ",") {
		clients, err := strconv.Atoi(strings.TrimSpace(crowd))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("clients=%d", clients), func(t *testing.T) {
			s := serve(t, binary, memory)
			ctx, cancel := context.WithTimeout(t.Context(), length)
			defer cancel()
			report, err := Run(ctx, Options{URL: s.url, Clients: clients, Plain: 2, BodySize: 7 << 20, Patience: 4 * time.Second, Limit: 2 * time.Minute})
			if err != nil {
				t.Fatalf("%v\n%s", err, s.log.String())
			}
			t.Logf("\n%smemory at most: %s of %d MiB\n", report, s.peak(), memory)
			if len(report.Stuck)+len(report.Failed) > 0 || report.Worst() > 3 || report.Refused > 0 {
				t.Errorf("want nothing stuck, nothing failed, no question refused, and the slowest one within three times its time alone")
			}
			if bytes.Contains(s.log.Bytes(), []byte("panic")) {
				t.Errorf("the log has a panic:\n%s", s.log.String())
			}
		})
	}
}

// build makes the lutra command.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "lutra")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/lutra-lm/lutra").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// server is a lutra process.
type server struct {
	pid int
	url string
	log bytes.Buffer // what it says apart from requests; to be read when it has ended
}

// serve starts a server with so many MiB of memory, and waits until it is ready.
func serve(t *testing.T, binary string, memory int) *server {
	t.Helper()
	args := []string{binary, "serve", "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s", "--kv-mem", "256MiB"}
	if runtime.GOOS == "linux" { // limits data, not addresses: Go reserves many of these
		args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -d %d; exec "$@"`, memory<<10), "sh"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LUTRA_LOG_FORMAT=json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{pid: cmd.Process.Pid}
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.read(stderr, ready)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v\n%s", err, s.log.String())
		}
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("the server has ended:\n%s", s.log.String())
	}
	return s
}

// read keeps what the log says beside requests.
func (s *server) read(log io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Message, Addr string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		switch {
		case line.Message == "request":
			continue
		case line.Message == "serving":
			s.url = "http://" + line.Addr
		case strings.HasPrefix(line.Message, "ready"):
			close(ready)
		}
		s.log.WriteString(lines.Text() + "\n")
	}
}

// peak is the most memory that the process has had, as far as the system tells.
func (s *server) peak() string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
