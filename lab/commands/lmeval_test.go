package commands

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/models/embedded"
)

func TestLMEvalScoresAreThoseOfTheLogits(t *testing.T) {
	interpreter := clienttest.Python(t, "lm_eval")
	binary := filepath.Join(t.TempDir(), "lutra-lab")
	// with the kernels of this test: others round differently
	if out, err := exec.Command("go", "build", "-tags", buildTags(), "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	script := filepath.Join("..", "..", "tools", "lmeval", "compare.py")
	url := serving(t, "--addr", "127.0.0.1:0", "--model", embedded.Default).base
	cmd := exec.CommandContext(t.Context(), interpreter, script, "--markdown", "--url", url, "--lutra", binary, "--model", embedded.Default)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "scores, each asked for in 3 ways") {
		t.Fatalf("compare.py: %v\n%s%s", err, out, &complaints)
	}
	doc, err := os.ReadFile("../../docs/evaluation.md")
	if err != nil {
		t.Fatal(err)
	}
	measured, shown := scoreRows(string(out)), scoreRows(string(doc))
	for item, want := range shown {
		if got := measured[item]; math.Abs(got-want) > 0.5 || len(shown) < 5 { // machines differ by up to 0.2 in the kernels' rounding
			t.Errorf("docs/evaluation.md shows %v for %s, compare.py --markdown gives %v", want, item, got)
		}
	}
}

// buildTags are those that this test was built with.
func buildTags() string {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return s.Value
		}
	}
	return ""
}

// scoreRows are lm-eval's scores in a table, by task and item.
func scoreRows(text string) map[string]float64 {
	scores := map[string]float64{}
	for _, row := range regexp.MustCompile("(?m)^(\\| `lutra_[a-z]+` \\| [0-9.]+) \\| `.*` \\| (-[0-9.]+) \\| ").FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(row[2], 64)
		if err == nil {
			scores[row[1]] = v
		}
	}
	return scores
}
