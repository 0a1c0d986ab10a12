package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/lutra-lm/lutra/models/embedded"
)

// server is the process under test.
type server struct {
	base    string
	process *os.Process
	dir     string // holds its configuration and the file of the model that is swapped
	// stop ends it and returns what it said, if it did not end well.
	stop func() error
}

var readyLine = regexp.MustCompile(`ready on .*?(http://[^/\s"]+)`)

// start runs the command with a configuration in dir, and waits until it is ready.
func start(ctx context.Context, opt *Options, dir string) (*server, error) {
	config := fmt.Sprintf(`models:
- {embedded: lutra-tiny-s}
- {embedded: lutra-tiny-l}
- {path: %q, name: %s}
- {path: swapped.gguf, name: %s}
server: {addr: "127.0.0.1:0", api_keys_file: keys.txt, lame_duck: 0s}
kv: {memory: 48MiB}
log: {level: error}
`, opt.Reader, reader, swapped)
	if err := swap(dir, 0); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"config.yaml": config, "keys.txt": keyFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, opt.Command[0], append(opt.Command[1:], "serve", "--config", "config.yaml", "--log", "info")...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), opt.Env...)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	base, tail := make(chan string, 1), make(chan string, 1)
	go func() {
		var last []string
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
				base <- m[1]
			}
			if !strings.Contains(lines.Text(), `"request"`) && !strings.Contains(lines.Text(), " request ") {
				last = append(last[max(0, len(last)-20):], lines.Text())
			}
		}
		_, _ = io.Copy(io.Discard, log) // a line that is too long
		tail <- strings.Join(last, "\n")
	}()
	s := &server{process: cmd.Process, dir: dir}
	s.stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		said := <-tail
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("the server ends with %w\n%s", err, said)
		}
		return nil
	}
	select {
	case s.base = <-base:
		return s, nil
	case said := <-tail:
		return nil, fmt.Errorf("the server does not start: %w\n%s", cmd.Wait(), said)
	}
}

// swap puts another model in the place of swapped.gguf, by renaming.
func swap(dir string, times int) error {
	entries := embedded.Models()
	data, err := embedded.Data(entries[times%2].Name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "new.gguf"), data, 0o600); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, "new.gguf"), filepath.Join(dir, "swapped.gguf"))
}

// reload swaps the model and has the server read its configuration again.
func (s *server) reload(times int) error {
	if err := swap(s.dir, times); err != nil {
		return err
	}
	return s.process.Signal(syscall.SIGHUP)
}

// Sample has a server's figures at a time.
type Sample struct {
	At         time.Duration // since the run began
	Requests   int           // ended so far
	Resident   float64       // bytes
	Heap       float64       // bytes, of Go
	Goroutines float64
	Files      int     // open descriptors; -1: the system does not tell
	InFlight   float64 // requests
	Leased     float64 // bytes of server.max_memory
	Sequences  float64 // running and waiting
	Blocks     float64 // sum over models of the shares of KV blocks that sequences hold
}

// idle reports whether nothing is under way and nothing held.
func (s *Sample) idle() bool { return s.InFlight+s.Leased+s.Sequences+s.Blocks == 0 }

// sample asks a server.
func (s *server) sample(ctx context.Context) (Sample, error) {
	sample := Sample{Files: -1}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/metrics", nil)
	if err != nil {
		return sample, err
	}
	req.Close = true // its own connection is not there the next time
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return sample, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return sample, err
	}
	for name, to := range map[string]*float64{
		"process_resident_memory_bytes": &sample.Resident, "go_memstats_heap_inuse_bytes": &sample.Heap, "go_goroutines": &sample.Goroutines,
		"lutra_requests_in_flight": &sample.InFlight, "lutra_request_memory_bytes": &sample.Leased,
		"lutra_num_requests_running": &sample.Sequences, "lutra_num_requests_waiting": &sample.Sequences, "lutra_kv_cache_usage_ratio": &sample.Blocks,
	} {
		f, ok := families[name]
		if !ok {
			return sample, fmt.Errorf("/metrics has no %s", name)
		}
		for _, m := range f.Metric {
			*to += m.GetGauge().GetValue()
		}
	}
	if files, err := os.ReadDir("/proc/" + strconv.Itoa(s.process.Pid) + "/fd"); err == nil {
		sample.Files = len(files)
	}
	return sample, nil
}

// settle waits until the server is idle, with no more goroutines and descriptors than as; nil: until two
// samples agree.
func (s *server) settle(ctx context.Context, as *Sample) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	var before Sample
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := s.sample(ctx)
		if err != nil {
			return before, err
		}
		same := now.Goroutines == before.Goroutines && now.Files == before.Files
		if as != nil {
			same = now.Goroutines <= as.Goroutines && now.Files <= as.Files
		}
		if now.idle() && same {
			return now, nil
		}
		before = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return before, fmt.Errorf("after %v without requests it holds %+v, as it had %+v", settling, before, as)
		}
	}
}

// settling is what a server has to put down all that ended requests held.
const settling = 2 * time.Minute
