package cli

import (
	"os"
	"os/exec"
	"runtime/debug"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
)

// asCommand in the environment makes the test's binary the lutra command, so
// that tests can run it as a process: with a terminal, with signals, in a shell.
// With toRead as its value the command only reads its line.
const (
	asCommand = "LUTRA_TEST_AS_COMMAND"
	toRead    = "read"
)

// cheap are settings of each command and process, none of which changes what it says: KV
// caches that hold a few of the tests' conversations, where a quarter of the machine's
// memory would be found and cleared for each server, and a lazy collector.
var cheap = map[string]string{"LUTRA_KV_MEMORY": "64MiB", "GOGC": "400"}

func TestMain(m *testing.M) {
	switch os.Getenv(asCommand) {
	case "":
		debug.SetGCPercent(400) // each command leaves what it made; to collect it at once is a quarter of the work
		for name, value := range cheap {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
		os.Exit(m.Run())
	case toRead:
		os.Exit(readLine(os.Args[1:]))
	default:
		os.Exit(Main(os.Args[1:]))
	}
}

// readLine checks a command line, and the configuration that it names, as Main does
// before it runs a command.
func readLine(args []string) int {
	root := newRoot(os.Stdout, os.Stderr)
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
		return report(os.Stderr, cmd.CommandPath(), err)
	}
	return 0
}

// process is a lutra command line as a process, with its home in a folder of the
// test's.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "HOME="+home, "XDG_STATE_HOME=", "LOCALAPPDATA="+home, "TERM=xterm")
	return cmd
}
