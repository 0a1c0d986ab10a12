//go:build unix

package commands

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
)

func TestCtrlCEndsABenchmarkOfKernelsWithItsRows(t *testing.T) {
	cmd := process(t, "bench", "kernels", "--budget", "50ms", "--full", "--tokens", "8,32") // one token takes more memory than caches have
	s := clienttest.Start(t, cmd, 80)
	s.Sees("products")
	s.Types("\x03")
	s.Sees("isa ", "kernel ", "GMAC/s", "ratio\r\n", "1 ")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("it ended with %v, want status 130", err)
	}
}

func TestAProgressBarNeedsRoom(t *testing.T) {
	for width, want := range map[uint16]bool{80: true, 40: false} {
		cmd := process(t, "eval", "--limit", "2", "--model", "lutra-tiny-s", "--methods", "single", "--n", "1")
		s := clienttest.Start(t, cmd, width)
		if got := strings.Contains(s.Sees("single"), "problems × points"); got != want {
			t.Errorf("in %d columns: a bar %v", width, got)
		}
		_ = cmd.Wait()
	}
}
