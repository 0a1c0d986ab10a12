package embedded

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

const recipe = "../../tools/train"

func TestTheHardSetIsWhatItsProgramWrites(t *testing.T) {
	sweep.Full(t)
	cmd := exec.CommandContext(t.Context(), clienttest.Python(t, "json"), "hard.py")
	cmd.Dir = recipe
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	if err != nil || string(out) != HardSet() {
		t.Errorf("hard.py: %v, and %d bytes that are not the %d embedded", err, len(out), len(HardSet()))
	}
}

// The recipe takes minutes, so it is run on demand, from the tokenizer to the exported files.
func TestTheRecipeGoesThroughAllItsStages(t *testing.T) {
	if os.Getenv("LUTRA_TRAIN") == "" {
		t.Skip("takes minutes: set LUTRA_TRAIN=1 to run it")
	}
	cmd := exec.CommandContext(t.Context(), "./pipeline.sh")
	cmd.Dir = recipe
	cmd.Env = append(os.Environ(), "SMOKE=1", "PY="+clienttest.Python(t, "torch", "numpy"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all done") {
		t.Errorf("pipeline.sh: %v\n%s", err, out[max(0, len(out)-2000):])
	}
}
