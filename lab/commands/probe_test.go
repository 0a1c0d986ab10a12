package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
)

func TestAProbeIsTrainedAndJudges(t *testing.T) {
	dir := t.TempDir()
	data, out, again := filepath.Join(dir, "problems.jsonl"), filepath.Join(dir, "probe.gguf"), filepath.Join(dir, "again.gguf")
	lines := strings.SplitAfterN(embedded.HardSet(), "\n", 101)
	if err := os.WriteFile(data, []byte(strings.Join(lines[:100], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	train := func(out string, more ...string) string {
		return mustLutra(t, append([]string{"probe", "train", "--model", "lutra-tiny-s", "--threads", "2", "--n", "4", "--out", out}, more...)...)
	}
	var report struct {
		Problems int
		Held     int `json:"held_out"`
		Probe    struct{ AUC float64 }
		Chosen   []struct{ By string }
	}
	if err := json.Unmarshal([]byte(train(out, "--data", data, "--json")), &report); err != nil || report.Problems != 100 || report.Held == 0 || len(report.Chosen) != 7 {
		t.Fatalf("%+v, %v", report, err)
	}
	train(again, "--data", data, "--concurrency", "3")
	if a, b := read(t, out), read(t, again); a != b {
		t.Error("the same problems make another probe when other numbers of them are answered at once")
	}
	journal := filepath.Join(dir, "report")
	mustLutra(t, "eval", "--model", "lutra-tiny-s", "--data", data, "--methods", "best_of_n;select=max", "--n", "4", "--concurrency", "8", "--out", journal)
	if text := train(again, "--journal", journal); !strings.Contains(text, "100 problems") || !strings.Contains(text, "probe × verifier") {
		t.Errorf("of a journal: %s", text)
	}
	kept, fromStates := filepath.Join(dir, "kept"), filepath.Join(dir, "states.gguf")
	mustLutra(t, "eval", "--model", "lutra-tiny-s", "--data", data, "--methods", "best_of_n;select=max", "--n", "4", "--concurrency", "8", "--out", kept, "--states")
	train(fromStates, "--journal", kept)
	if a, b := read(t, again), read(t, fromStates); a != b {
		t.Error("states that were kept make another probe than those that are computed again")
	}
	if text := train(filepath.Join(dir, "both.gguf"), "--journal", journal, "--journal", kept); !strings.Contains(text, "chosen among 8") {
		t.Errorf("of two journals with 4 candidates each: %s", text)
	}
	rescored := filepath.Join(dir, "rescored.jsonl")
	if text := train(fromStates, "--journal", kept, "--folds", "5", "--rescored", rescored); !strings.Contains(text, "100 held out") {
		t.Errorf("with folds: %s", text)
	}
	if text := mustLutra(t, "eval", "choose", rescored, "--n", "4", "--rules", "score,weighted", "--compare", "score"); !strings.Contains(text, "weighted") {
		t.Errorf("chosen again: %s", text)
	}
	if _, err := lutra(t, "probe", "train", "--model", "lutra-tiny-s", "--journal", kept, "--layers", "1", "--out", again); err == nil || !strings.Contains(err.Error(), "and not of [1]") {
		t.Errorf("other layers than the journal's: %v", err)
	}
	if text := mustLutra(t, "eval", "--model", "lutra-tiny-s", "--verifier", "mine="+out, "--data", data, "--limit", "4", "--methods", "best_of_n,beam_search", "--n", "4"); !strings.Contains(text, "beam_search") {
		t.Errorf("with the probe: %s", text)
	}
	if _, err := lutra(t, "eval", "--model", "lutra-tiny-l", "--verifier", "mine="+out, "--limit", "1", "--n", "2"); err == nil || !strings.Contains(err.Error(), "it reads the states of") {
		t.Errorf("another model: %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatCannotBeTrainedOnIsSaid(t *testing.T) {
	for want, args := range map[string][]string{
		"--out is required":                 {"--data", "x"},
		"set either --data or --journal":    {"--out", "y"},
		"--n: 1 is outside":                 {"--data", "x", "--out", "y", "--n", "1"},
		"--folds: 2 is neither":             {"--data", "x", "--out", "y", "--folds", "2"},
		"--rescored: it is one journal":     {"--data", "x", "--out", "y", "--rescored", "z"},
		"there is no file x":                {"--data", "x", "--out", "y"},
		"no such file":                      {"--journal", "x", "--out", "y", "--model", "lutra-tiny-s"},
		"layer 7: want ascending numbers":   {"--journal", "x", "--out", "y", "--model", "lutra-tiny-s", "--layers", "7"},
		"--concurrency and --max-tokens mu": {"--data", "x", "--out", "y", "--concurrency", "0"},
	} {
		if _, err := lutra(t, append([]string{"probe", "train"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}
