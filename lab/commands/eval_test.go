package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/tts/profile"
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
		!slices.Equal(report.Command, []string{"lutra-lab", "eval", "--limit=2", "--methods=single,best_of_n;select=max,beam_search", "--model=lutra-tiny-s", "--n=1,4", "--out=" + dir}) {
		t.Errorf("results.json says of the run %+v", report)
	}
	if len(results) != 3 || results[0].Problems != 2 || results[1].Tokens <= results[0].Tokens || results[2].Verifier == 0 || results[2].Width != 4 || results[1].LatencyMS <= 0 {
		t.Errorf("results = %+v", results)
	}
	for _, name := range []string{"results.md", "pareto.svg"} {
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

	var rows []eval.ChoiceRow
	if err := json.Unmarshal([]byte(mustLutra(t, "eval", "choose", dir, "--n", "2,4", "--rules", "score", "--compare", "vote", "--json")), &rows); err != nil {
		t.Fatal(err)
	}
	// What the run chose by the highest score of 4 is chosen again.
	if len(rows) != 4 || rows[2].Rule != "score" || rows[2].N != 4 || rows[2].Problems != 2 || rows[2].Right != results[1].Accuracy || rows[2].Against.Rule != "vote" {
		t.Errorf("chosen again: %+v", rows)
	}
	for _, c := range []struct{ args, want string }{
		{"eval choose", "JOURNAL is missing"},
		{"eval choose " + dir + " --rules best", `there is no rule "best"`},
		{"eval choose " + dir + " --n 5", "no problem has so many candidates"},
		{"eval choose " + dir + " --n 0", "outside 1 to 4096"},
		{"eval choose " + dir + " --seeds 0", "outside 1 to 1000"},
		{"eval choose " + filepath.Join(dir, "absent"), "no such file"},
	} {
		if _, err := lutra(t, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestEvalComparesMethodsProblemByProblem(t *testing.T) {
	dir := t.TempDir()
	args := []string{"eval", "--model", "lutra-tiny-s", "--limit", "3", "--methods", "best_of_n,best_of_n;adaptive=true,deepconf,particle_filtering", "--n", "4", "--compare", "best_of_n", "--out", dir}
	text := mustLutra(t, args...)
	for _, want := range []string{"McNemar p", "deepconf;n=4", "best_of_n;adaptive=true;n=4", "particle_filtering;n=4"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not print %q:\n%s", want, text)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil || !strings.Contains(string(page), "McNemar p") {
		t.Errorf("results.md: %v\n%s", err, page)
	}
	var report eval.Report
	if err := json.Unmarshal([]byte(mustLutra(t, append(args, "--json")...)), &report); err != nil || len(report.Differences) != 3 || report.Differences[0].Problems != 3 || report.Differences[0].Base.Method != "best_of_n" {
		t.Errorf("%v: %+v", err, report.Differences)
	}
}

func TestEvalWritesAProfileThatServersRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile.json")
	mustLutra(t, "eval", "--model", "lutra-tiny-s", "--limit", "2", "--methods", "single;temperature=0,best_of_n,self_consistency;adaptive=true", "--n", "2", "--profile", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Models[0]
	if p.Problems != 2 || c.Name != "lutra-tiny-s" || len(c.Sketch) != 16 || len(c.StepMS) == 0 || len(c.Points) != 3 {
		t.Fatalf("the profile is %+v of %+v", p, c)
	}
	if best := c.Points[1]; best.Plan != "best_of_n;n=2" || best.Verifier != "lutra-tiny-s-probe*lutra-tiny-prm" || best.Tokens == 0 || best.MS == 0 || best.Low > best.Quality || best.High < best.Quality {
		t.Errorf("best of 2 is %+v", best)
	}
	if last := c.Points[2]; last.Verifier != "" {
		t.Errorf("a vote was judged: %+v", last)
	}
}

func TestEvalRefusesWhatItCannotMeasure(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte(`{"question": "q", "answer": 1}`+"\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--data " + bad, "bad.jsonl: bad data: line 2"},
		{"--data " + bad + ".none", "--data: there is no file"},
		{"--methods magic", "magic"},
		{"--compare magic", "magic"},
		{"--n 0", "outside 1 to 4096"},
		{"--split hard --data " + bad, "leave out --data"},
		{"--split harder", "harder"},
		{"--concurrency 0", "positive"},
		{"--limit -1", "negative"},
		{"--url http://127.0.0.1:0/v1", "no server answers"},
		{"--url http://127.0.0.1:0/v1 --profile " + bad, "--profile"},
		{"--concurrency 2 --profile " + bad, "--profile"},
		{"--limit 1 --methods quality=0.5", "a server chooses"},
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

func TestEvalShowsProgressOffATerminal(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	done := (&output.Meter{W: &out, What: "problems × points", Now: func() time.Time { return clock }}).Count(10, 100)
	for range 90 {
		clock = clock.Add(time.Second)
		done()
	}
	if want := "problems × points: 20 of 100\nproblems × points: 30 of 100\n"; !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\n") != 8 {
		t.Errorf("it printed %s", &out)
	}
}

func TestCtrlCPrintsTheResultsSoFar(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		asked := 0
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`) })
		mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 3 {
				cancel(context.Canceled)
				return
			}
			_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"7"}}],"usage":{"completion_tokens":1}}`)
		})
		s := httptest.NewServer(mux)
		var out, errOut bytes.Buffer
		root := Command(&out, &errOut)
		args := []string{"eval", "--url", s.URL, "--limit", "5", "--methods", "single,single;temperature=0", "--n", "8"}
		if asJSON {
			args = append(args, "--json", "--api-key", "secret")
		}
		root.SetArgs(args)
		err := root.ExecuteContext(ctx)
		s.Close()
		if !errors.Is(err, context.Canceled) || errOut.String() != "interrupted, 7 answers left; with --out, the same command continues\n" {
			t.Errorf("it ends with %v and says %q", err, &errOut)
		}
		if !asJSON {
			if rows := strings.Split(strings.TrimSpace(out.String()), "\n"); len(rows) != 3 || !strings.HasPrefix(rows[1], "m      single ") || !strings.HasPrefix(rows[2], "m      single;temperature=0") {
				t.Errorf("the table is\n%s", &out)
			}
			continue
		}
		var report eval.Report
		if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Left != 7 || len(report.Results) != 2 || report.Results[0].Problems != 2 || report.Results[1].Problems != 1 {
			t.Errorf("%v: %+v", err, report)
		}
		if line := strings.Join(report.Command, " "); strings.Contains(line, "secret") || !strings.Contains(line, "--methods=single,single;temperature=0") {
			t.Errorf("the command is noted as %s", line)
		}
	}
}
