package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/lab/eval"
)

func TestSearchesRunThroughTheDevice(t *testing.T) {
	right := map[string][]float64{}
	for _, backend := range []string{"cpu", "hexagon-go"} {
		for _, plan := range [][2]string{{"best_of_n", "8"}, {"beam_search", "4"}} {
			var report eval.Report
			out := mustLutra(t, "eval", "--backend", backend, "--model", "lutra-tiny-s", "--limit", "2", "--methods", plan[0], "--n", plan[1], "--width", "4", "--json")
			if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Results) != 1 {
				t.Fatalf("%v: %s", err, out)
			}
			right[backend] = append(right[backend], 2*report.Results[0].Accuracy)
		}
	}
	t.Logf("right answers by method %v", right)
	for i, on := range right["hexagon-go"] {
		if on < right["cpu"][i]-1 {
			t.Errorf("method %d: %v of 2 problems right on the device, %v on the CPU", i, on, right["cpu"][i])
		}
	}
}

func TestDevicesGiveTheSameAnswersAndTheSameLogits(t *testing.T) {
	sweep.Hexagon(t, "qemu-hexagon")
	dir := t.TempDir()
	tokens := filepath.Join(dir, "ids")
	if err := os.WriteFile(tokens, []byte("1022 286 10 258 273 111 300 301 5 6 7 8 9"), 0o600); err != nil {
		t.Fatal(err)
	}
	var answers, logits []string
	for _, backend := range []string{"hexagon-go", "hexagon-qemu"} {
		answer, err := lutra(t, "ask", "--backend", backend, "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?")
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, backend+".f32")
		mustLutra(t, "logits", "--backend", backend, "--tokens", tokens, "--out", out)
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		answers, logits = append(answers, answer), append(logits, string(raw))
	}
	if answers[0] != answers[1] || logits[0] != logits[1] {
		t.Errorf("answers %q, logits equal: %t", answers, logits[0] == logits[1])
	}
}

func TestABackendThatCannotRunSaysWhatIsMissing(t *testing.T) {
	t.Setenv("LUTRA_QEMU_HEXAGON", "no-such-emulator")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ask", "--backend", "hexagon-qemu", "hi"}, "no-such-emulator"},
		{[]string{"ask", "--backend", "gpu", "hi"}, `--backend: "gpu" is none of cpu, hexagon-go`},
		{[]string{"ask", "--backend", "hexagon-goo", "hi"}, "did you mean"},
		{[]string{"logits", "--backend", "gpu", "--tokens", "x", "--out", "y"}, "--backend"},
		{[]string{"bench", "engine", "--backend", "hexagon-qemu"}, "no-such-emulator"},
		{[]string{"logits", "--exact", "--backend", "hexagon-go", "--tokens", "/dev/null", "--out", "y"}, "--exact"},
	} {
		if _, err := lutra(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("lutra %v: error %v, want %q in it", slices.Clone(c.args), err, c.want)
		}
	}
}

func TestAServerCountsWhatItsDeviceDoes(t *testing.T) {
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s", "--backend", "hexagon-go")
	answer := mustLutra(t, "ask", "--url", s.base+"/v1", "--scaling", "bon8", "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?")
	if !strings.Contains(answer, "84") {
		t.Errorf("the server answers %q", answer)
	}
	for _, series := range []string{`rows_total{model_name="lutra-tiny-s",path="lookup"}`, `rows_total{model_name="lutra-tiny-s",path="tiles"}`,
		`lanes_total{model_name="lutra-tiny-s",path="tiles"}`, `lanes_total{model_name="lutra-tiny-prm",path="attention"}`, `packets_total{model_name="lutra-tiny-s"}`} {
		if n := scrape(t, s.base+"/metrics", "lutra_device_"+series); n <= 0 {
			t.Errorf("%s is %v", series, n)
		}
	}
	if n := scrape(t, s.base+"/metrics", `lutra_device_failed{model_name="lutra-tiny-s"}`); n != 0 {
		t.Error("the device is said to have failed")
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}
