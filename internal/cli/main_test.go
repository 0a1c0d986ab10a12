package cli

import (
	"os"
	"os/exec"
	"testing"
)

// asCommand in the environment makes the test's binary the lutra command, so
// that tests can run it as a process: with a terminal, with signals, in a shell.
const asCommand = "LUTRA_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
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
