// Package docs_test holds what documents and --help say to the code: the names in them
// exist, their links lead somewhere, and their examples do what they say.
package docs_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/lab/commands"
)

// asCommand in the environment makes the test's binary the program of its name, lutra or lutra-lab, which
// examples call. With toRead as its value the command only reads its line.
const (
	asCommand = "LUTRA_TEST_AS_COMMAND"
	toRead    = "read"
	// documentsIn is the repository.
	documentsIn = "LUTRA_TEST_DOCUMENTS"
)

// cheap has settings for each command that change nothing it prints: a lazy collector, and KV
// caches for a few conversations. By default each server would clear a quarter of the machine's memory.
var cheap = map[string]string{"LUTRA_KV_MEMORY": "64MiB", "GOGC": "400"}

func TestMain(m *testing.M) {
	switch os.Getenv(asCommand) {
	case "":
		cheap[documentsIn] = must(filepath.Abs(repository))
		for name, value := range cheap {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
		os.Exit(m.Run())
	case toRead:
		os.Exit(readLine(os.Args[1:]))
	default:
		if isLab() {
			os.Exit(commands.Main(os.Args[1:]))
		}
		os.Exit(cli.Main(os.Args[1:], os.DirFS(os.Getenv(documentsIn))))
	}
}

// isLab tells whether the test's binary was called as lutra-lab.
func isLab() bool { return filepath.Base(os.Args[0]) == "lutra-lab" }

// readLine checks a command line, and the configuration that it names, as Main does
// before it runs a command.
func readLine(args []string) int {
	root := cli.Command(os.Stdout, os.Stderr)
	if isLab() {
		root = commands.Command(os.Stdout, os.Stderr)
	}
	for _, c := range commandsBelow(root) {
		if c.RunE != nil {
			c.RunE = func(cmd *cobra.Command, _ []string) error {
				file := cmd.Flags().Lookup("config")
				if file == nil {
					return nil
				}
				_, err := config.Load(file.Value.String(), os.Environ(), cmd.Flags())
				return err
			}
		}
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.CommandPath(), err)
		return 2
	}
	return 0
}

var readyLine = regexp.MustCompile(`ready on .*?(http://[^/\s"]+)`)

// serving starts a server, which the test's end ends, and returns its address.
func serving(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), must(os.Executable()), append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	base, said := make(chan string, 1), ""
	ended := make(chan struct{})
	go func() { // to the end, so that logging never blocks the server
		defer close(ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			said += lines.Text() + "\n"
			if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
				base <- m[1]
			}
		}
	}()
	t.Cleanup(func() { // the test's context has ended
		<-ended
		_ = cmd.Wait()
	})
	select {
	case at := <-base:
		return at
	case <-ended:
		t.Fatalf("lutra serve ends\n%s", said)
		return ""
	}
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

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
