package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFileThatFindsNoRoomIsNamedAndNotLeftHalf limits the size of files, which cuts a write as a full
// disk does.
func TestAFileThatFindsNoRoomIsNamedAndNotLeftHalf(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "model.gguf")
	cmd := process(t, "bench", "model", "--shape", "tiny", "-o", model)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -f 64; exec "$@"`, "sh"}, cmd.Args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), model) || !strings.Contains(string(out), "file too large") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}
