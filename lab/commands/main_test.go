package commands

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/synthetic"
	"github.com/lutra-lm/lutra/server"
)

// asCommand in the environment makes the test's binary lutra-lab, or lutra for a command of that.
const asCommand = "LUTRA_TEST_AS_COMMAND"

// cheap are settings of each command and process, none of which changes what it says: small KV caches and
// a lazy collector.
var cheap = map[string]string{"LUTRA_KV_MEMORY": "64MiB", "GOGC": "400"}

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		if args := os.Args[1:]; !isInstrument(args) {
			os.Exit(cli.Main(args, nil))
		}
		os.Exit(Main(os.Args[1:]))
	}
	cpulimit.OnWait = func() { panic("something is waited for within a place of cpulimit") }
	debug.SetGCPercent(400)
	for name, value := range cheap {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// isInstrument tells whether a command line is for lutra-lab.
func isInstrument(args []string) bool {
	return len(args) == 0 || slices.ContainsFunc(program.Commands(), func(c *cobra.Command) bool { return c.Name() == args[0] })
}

// command returns the program that a command line is for.
func command(args []string, out, errOut io.Writer) *cobra.Command {
	root := cli.Command(out, errOut)
	if isInstrument(args) {
		root = Command(out, errOut)
	}
	root.SetArgs(args)
	return root
}

// lutra runs a command line of either program and returns what it printed.
func lutra(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := command(args, &out, io.Discard).ExecuteContext(t.Context())
	return out.String(), err
}

func mustLutra(t *testing.T, args ...string) string {
	t.Helper()
	out, err := lutra(t, args...)
	if err != nil {
		t.Fatalf("lutra %q: %v", args, err)
	}
	return out
}

// complain runs a command line of lutra-lab as Main does and returns its exit status and what it wrote to
// standard error.
func complain(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	root := Command(io.Discard, &out)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(t.Context())
	if err == nil {
		return 0, out.String()
	}
	status := cli.Report(&out, cmd.CommandPath(), err)
	return status, out.String()
}

// process is a command line as a process, with its home in a folder of the test's.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), must(os.Executable()), args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), asCommand+"=1", "HOME="+home, "XDG_STATE_HOME=", "LOCALAPPDATA="+home, "TERM=xterm")
	return cmd
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tinyModel is a GGUF file of noise.
func tinyModel(t *testing.T) []byte {
	t.Helper()
	shape, err := synthetic.Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	shape.Layers = 1
	var model bytes.Buffer
	if err := synthetic.Write(&model, shape, synthetic.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	return model.Bytes()
}

// document is the text of a file in docs.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// configFile writes a configuration file.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// live is a `lutra serve` of this process.
type live struct {
	base string // its address
	stop func() error
}

var readyLine = regexp.MustCompile(`"message":"ready on .*?(https?://[^/\s"]+)`)

// serving starts a server and waits until it is ready. It stops when the test ends, or when stop is called.
func serving(t *testing.T, args ...string) *live {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	logRead, logWrite := io.Pipe()
	cmd := cli.Command(io.Discard, logWrite)
	cmd.SetArgs(append([]string{"serve"}, args...))
	result := make(chan error, 1)
	go func() {
		result <- cmd.ExecuteContext(ctx)
		logWrite.Close()
	}()
	s := &live{}
	ready, logged := make(chan string, 1), make(chan struct{})
	go func() { // reads to the end, so that logging never blocks the server
		defer close(logged)
		for lines := bufio.NewScanner(logRead); lines.Scan(); {
			if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
	}()
	s.stop = sync.OnceValue(func() error {
		cancel(server.ErrAtOnce)
		err := <-result
		<-logged
		return err
	})
	t.Cleanup(func() { _ = s.stop() })
	select {
	case s.base = <-ready:
	case <-logged:
		t.Fatalf("serve %q: %v", args, s.stop())
	}
	return s
}

// models returns the names of the models that the server lists.
func (l *live) models(t *testing.T) (names []string) {
	t.Helper()
	resp, err := http.Get(l.base + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct{ ID string } `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names
}

// scrape reads one metric.
func scrape(t *testing.T, url, series string) float64 {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), series+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no %s", series)
	return 0
}
