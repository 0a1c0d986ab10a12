package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/eval"
)

func TestEvalReportsAndContinues(t *testing.T) {
	dir := t.TempDir()
	args := []string{"eval", "--model", "lutra-tiny-s", "--limit", "2", "--methods", "single,best_of_n;select=max,beam_search", "--n", "1,4", "--out", dir}
	text := mustLutra(t, args...)
	for _, want := range []string{"single", "best_of_n;select=max", "beam_search", "95 % interval"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	var report eval.Report
	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	results := report.Results
	if report.Version == "" || report.Hash == "" || report.Temperature != 0.8 || report.Seed != 1 || report.Problems != 2 || report.Left != 0 || len(report.Models["lutra-tiny-s"]) != 64 || len(report.Models["lutra-tiny-prm"]) != 64 ||
		!slices.Equal(report.Command, []string{"lutra", "eval", "--limit=2", "--methods=single,best_of_n;select=max,beam_search", "--model=lutra-tiny-s", "--n=1,4", "--out=" + dir}) {
		t.Errorf("results.json says of the run %+v", report)
	}
	if len(results) != 3 || results[0].Problems != 2 || results[1].Tokens <= results[0].Tokens || results[2].Verifier == 0 || results[2].Width != 4 || results[1].LatencyMS <= 0 {
		t.Errorf("results = %+v", results)
	}
	for _, name := range []string{"results.md", "pareto.svg", "pareto.png"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
	}

	var repeated eval.Report
	if err := json.Unmarshal([]byte(mustLutra(t, append(args, "--json")...)), &repeated); err != nil {
		t.Fatal(err)
	}
	again := repeated.Results
	if again[1].LatencyMS != results[1].LatencyMS {
		t.Errorf("the second run measured again: %+v, then %+v", results[1], again[1])
	}
	if _, err := lutra(t, append(args, "--seed", "2")...); !errors.Is(err, eval.ErrSetup) {
		t.Errorf("another seed: %v, want ErrSetup", err)
	}
}

func TestEvalRefusesWhatItCannotMeasure(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte(`{"question": "q", "answer": 1}`+"\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--data " + bad, "bad.jsonl: bad data: line 2"},
		{"--data " + bad + ".none", "no such file"},
		{"--methods magic", "magic"},
		{"--n 0", "outside 1 to 4096"},
		{"--concurrency 0", "positive"},
		{"--limit -1", "negative"},
		{"--url http://127.0.0.1:0/v1", "no server answers"},
	} {
		if _, err := lutra(t, append([]string{"eval"}, strings.Fields(c.args)...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("eval %s: error %v, want %q in it", c.args, err, c.want)
		}
	}
}

func TestEvaluationModelsAnNPUsTimeAndEnergy(t *testing.T) {
	dir := t.TempDir()
	out := mustLutra(t, "eval", "--model", "lutra-tiny-s", "--soc", "elite", "--limit", "2", "--methods", "single,best_of_n", "--n", "1,8", "--out", dir, "--json")
	var report eval.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	results := report.Results
	if len(results) != 2 {
		t.Fatalf("%d results, want 2", len(results))
	}
	for _, r := range results {
		if !(r.ModelledMS > 0.1) || !(r.ModelledMJ > r.ModelledMS) || r.ModelledMJ > 10*r.ModelledMS {
			t.Errorf("%s: %v ms and %v mJ; a phone takes some watts", r.Point, r.ModelledMS, r.ModelledMJ)
		}
	}
	if results[1].ModelledMS <= results[0].ModelledMS {
		t.Error("eight candidates and their judge take no more than one")
	}
	for name, want := range map[string]string{"npu.svg": "modelled latency", "npu-energy.svg": "modelled energy", "results.md": "Snapdragon 8 Elite"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, want it to say %q", name, err, want)
		}
	}
	for _, args := range [][]string{{"--url", "http://127.0.0.1:1/v1"}, {"--concurrency", "2"}} {
		if _, err := lutra(t, append([]string{"eval", "--soc", "elite"}, args...)...); err == nil || !strings.Contains(err.Error(), "--soc") {
			t.Errorf("with %v: %v", args, err)
		}
	}
}
