package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/bench"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

func TestBenchEngineReportsEveryTest(t *testing.T) {
	var results []bench.EngineResult
	out := mustLutra(t, "bench", "engine", "--json", "--reps", "1", "--model", "lutra-tiny-s", "--tests", "pp32,tg4,par3,par2@d40")
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 4 || results[2].Test != "par3" || results[3].Test != "par2 @ d40" {
		t.Fatalf("bench engine = %s", out)
	}
	if pp, tg, par := results[0].Fill, results[1].Fill, results[2].Fill; pp != 1 || tg != 1.0/32 || par < tg || par > 3*tg {
		t.Errorf("lanes filled by a prompt of 32, one stream, three: %v, %v, %v", pp, tg, par)
	}
	for _, r := range results {
		if r.TokS <= 0 || r.Min > r.TokS || r.Max < r.TokS {
			t.Errorf("%+v", r)
		}
	}
}

func TestBenchEngineDictatesWhatADraftModelKnows(t *testing.T) {
	out := mustLutra(t, "bench", "engine", "--json", "--reps", "1", "--draft-model", "lutra-tiny-s", "--speculation", "3", "--tests", "dr16,sp16")
	var results []bench.EngineResult
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 2 {
		t.Fatalf("bench engine = %s", out)
	}
	for _, args := range [][]string{{"--tests", "dr16"}, {"--tests", "sp16", "--speculation", "much"}} {
		var mistake usage.Error
		if _, err := lutra(t, append([]string{"bench", "engine"}, args...)...); !errors.As(err, &mistake) {
			t.Errorf("bench engine %v: %v, want an error of usage", args, err)
		}
	}
}

func TestBenchEngineMakesAPartOfAnMTPLayersGuessesWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mtp.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	shape := synthetic.Shape{
		Name: "mtp", Hidden: 64, FFN: 64, Layers: 4, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 300, Context: 512, RopeBase: 10000,
		TiedEmbedding: true, Arch: synthetic.Qwen35, Delta: synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 16}, Predicts: true,
	}
	if err := errors.Join(synthetic.Write(f, shape, synthetic.Options{Blocks: gguf.F16, Head: gguf.F16, Seed: 2}), f.Close()); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "engine", "--json", "--reps", "1", "--model", path, "--par-tokens", "40", "--speculation", "3"}
	for _, acceptance := range []string{"1", "0"} { // three guesses a step, right or wrong
		out := mustLutra(t, append(args, "--tests", "dt2,mtp2", "--acceptance", acceptance)...)
		var results []bench.EngineResult
		if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 2 || results[1].Fill <= results[0].Fill {
			t.Fatalf("bench engine = %s", out)
		}
	}
	for _, wrong := range [][]string{{"--tests", "mtp2", "--acceptance", "1.5"}, {"--tests", "mtp2", "--acceptance", "NaN"}, {"--tests", "mtp2", "--model", "lutra-tiny-s"}} {
		var mistake usage.Error
		if _, err := lutra(t, append(args, wrong...)...); !errors.As(err, &mistake) {
			t.Errorf("%v: %v, want an error of usage", wrong, err)
		}
	}
}

func TestBenchEngineHoldsAnswersToASchema(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "schema.json")
	text := `{"type": "object", "properties": {"number_of_apples": {"type": "integer"}}, "required": ["number_of_apples"], "additionalProperties": false}`
	if err := os.WriteFile(schema, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "engine", "--json", "--reps", "1", "--model", "lutra-tiny-s", "--tests", "st3", "--schema"}
	for _, vocabulary := range [][]string{nil, {"--vocabulary", "lutra-tiny-l"}} {
		var results []bench.EngineResult
		out := mustLutra(t, append(append(args, schema), vocabulary...)...)
		if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 || results[0].TokS <= 0 {
			t.Fatalf("bench engine = %s", out)
		}
	}
	var mistake usage.Error
	if _, err := lutra(t, "bench", "engine", "--tests", "st3"); !errors.As(err, &mistake) {
		t.Errorf("without a schema: %v, want an error of usage", err)
	}
	for _, wrong := range []string{filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		if _, err := lutra(t, append(args, wrong)...); err == nil {
			t.Errorf("%s was taken for a schema", wrong)
		}
	}
}

func TestBenchEngineComparesWithACommand(t *testing.T) {
	clienttest.Programs(t, "sh")
	turns := filepath.Join(t.TempDir(), "turns")
	peer := `echo x >> '` + turns + `'; echo '[{"n_prompt": 0, "n_gen": 4, "avg_ts": 2}]'`
	args := []string{"bench", "engine", "--model", "lutra-tiny-s", "--tests", "tg4", "-r", "2", "--compare"}
	var r bench.CompareReport
	if err := json.Unmarshal([]byte(mustLutra(t, append(args, "fake="+peer, "--json")...)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Comparisons) != 1 || r.Comparisons[0].Peers.Median != 2 || r.Comparisons[0].Ratio.Min <= 0 || r.Commands["fake"] != peer {
		t.Errorf("%+v", r)
	}
	if ran, err := os.ReadFile(turns); err != nil || string(ran) != "x\nx\n" {
		t.Errorf("the peer ran %q, %v", ran, err)
	}
	if text := mustLutra(t, append(args, "fake="+peer, "--compare", "other=echo speed 5", "--compare-pattern", `(?P<value>\d)\D*$`)...); !strings.Contains(text, "other") || !strings.Contains(text, "ratio") {
		t.Errorf("bench engine --compare = %s", text)
	}
	deep := []string{"bench", "engine", "--model", "lutra-tiny-s", "--tests", "tg4@d20", "-r", "1", "--json"}
	deep = append(deep, "--compare", `fake=echo '{"n_prompt": 0, "n_gen": 4, "n_depth": 20, "avg_ts": 2}'`)
	if text := mustLutra(t, deep...); !strings.Contains(text, `"tg4 @ d20"`) {
		t.Errorf("decoding after 20 tokens, compared: %s", text)
	}
	if _, err := lutra(t, append(args, "fake=echo out of memory >&2; exit 3")...); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("a peer that fails: error %v", err)
	}
	for _, bad := range [][]string{{"nameless"}, {"a=x", "--compare", "a=y"}, {"a=x", "--compare-pattern", "("}, {"a=x", "--compare-pattern", "(speed)"}} {
		_, err := lutra(t, append(args, bad...)...)
		var mistake usage.Error
		if !errors.As(err, &mistake) {
			t.Errorf("--compare %q: error %v, want one of usage", bad, err)
		}
	}
}

func TestBenchKernelsComparesWithACommand(t *testing.T) {
	clienttest.Programs(t, "sh")
	var r bench.CompareReport
	out := mustLutra(t, "bench", "kernels", "--json", "--packings", "I2", "--shapes", "64x256", "--tokens", "4", "--threads", "1", "--budget", "1ms", "--rounds", "1",
		"--compare", "fake=echo m=64 k=256 n=4 8 GFLOPS", "--compare-pattern", `m=(?P<m>\d+) k=(?P<k>\d+) n=(?P<n>\d+) (?P<gflops>\S+)`)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Comparisons) != 1 || r.Comparisons[0].Test != "64x256/4" || r.Comparisons[0].Peers.Median != 4 || r.Comparisons[0].Ours.Median <= 0 {
		t.Errorf("%+v", r)
	}
	var mistake usage.Error
	if _, err := lutra(t, "bench", "kernels", "--compare", "fake=true"); !errors.As(err, &mistake) {
		t.Errorf("every packing against one peer: error %v, want one of usage", err)
	}
}

func TestBenchEngineProfilesEveryKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the machine for two seconds")
	}
	var reports []bench.ProfileReport
	if err := json.Unmarshal([]byte(mustLutra(t, "bench", "engine", "--profile", "--json", "-r", "1", "--model", "lutra-tiny-s", "--tests", "par2")), &reports); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || reports[0].Steps < 64 || reports[0].TokS <= 0 {
		t.Fatalf("%+v", reports)
	}
	parts, share := map[string]bench.ProfilePart{}, 0.0
	for _, p := range reports[0].Parts {
		parts[p.Name] = p
		share += p.Share
	}
	if parts["ternary"].GMACs <= 0 || parts["ternary"].Roofline <= 0 || parts["attention"].Calls == 0 || parts["rows"].Calls == 0 {
		t.Errorf("%+v", parts)
	}
	if share < 0.9 || share > 1.1 {
		t.Errorf("the parts add up to %v of the time", share)
	}
}

func TestBenchGrowthMeasuresAndDrawsEveryAxis(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "growth.svg")
	args := []string{"bench", "growth", "--model", "lutra-tiny-s", "-r", "1", "--decode", "2", "--batches", "1,3", "--contexts", "8,16,60000"}
	var points []bench.GrowthPoint
	if err := json.Unmarshal([]byte(mustLutra(t, append(args, "--threads", "1,2", "--svg", svg, "--json")...)), &points); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, p := range points {
		count[p.Axis+" "+p.Series]++
		if p.TokS <= 0 || p.MS <= 0 {
			t.Errorf("%+v", p)
		}
	}
	want := map[string]int{"batch decode": 2, "context decode": 2, "context prefill": 2, "threads prefill": 2, "threads decode 1": 2, "threads decode 32": 2}
	for curve, n := range want {
		if count[curve] != n {
			t.Errorf("%s has %d points, want %d", curve, count[curve], n)
		}
	}
	drawing, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(drawing), "</svg>") || !strings.Contains(string(drawing), "decode 32") {
		t.Errorf("the drawing is %d bytes, %v", len(drawing), err)
	}
	for _, bad := range [][]string{{"--batches", "4,1"}, {"--contexts", "0"}, {"--threads", "-1"}, {"--decode", "1"}} {
		var mistake usage.Error
		if _, err := lutra(t, append(args, bad...)...); !errors.As(err, &mistake) {
			t.Errorf("%v: error %v, want one of usage", bad, err)
		}
	}
}

// interrupted is a report of a command that ended early.
type interrupted []string

func (r interrupted) Print(w io.Writer) error {
	_, err := io.WriteString(w, strings.Join(r, " and ")+"\n")
	return err
}

func TestAReportIsPrintedBesideTheErrorThatEndedIt(t *testing.T) {
	for asJSON, want := range map[bool]string{false: "one and two\n", true: "[\n  \"one\",\n  \"two\"\n]\n"} {
		var out bytes.Buffer
		cmd := Command(&out, io.Discard)
		if err := showReport(cmd, asJSON, interrupted{"one", "two"}, context.Canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the command", err)
		}
		if out.String() != want {
			t.Errorf("JSON %v: printed %q, want %q", asJSON, &out, want)
		}
	}
}

func TestBenchPlanTellsWhatIsModelledAndWhatItCosts(t *testing.T) {
	args := []string{"bench", "plan", "--model", "lutra-tiny-s", "-r", "1", "--streams", "3", "--prompt", "8", "--output", "4", "--n", "2", "--price", "2"}
	var r bench.PlanReport
	if err := json.Unmarshal([]byte(mustLutra(t, append(args, "--rate", "100000", "--p95", "30s", "--json")...)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 3 || r.PromptMS <= 0 || r.Sustained <= 0 || r.Sustained > r.Limit || r.Replicas < 2 {
		t.Errorf("%+v", r)
	}
	if want := 2 * float64(r.Replicas); r.Hourly != want || r.Million <= 0 {
		t.Errorf("costs %v an hour and %v a million tokens, want %v an hour", r.Hourly, r.Million, want)
	}
	text := mustLutra(t, append(args, "--p95", "30s")...)
	for _, want := range []string{"measured: ", "modelled: one replica", "of one of them, modelled", "cost: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if _, err := lutra(t, append(args, "--p95", "1ns")...); err == nil || !strings.Contains(err.Error(), "no number of such machines") {
		t.Errorf("error %v for a limit of a nanosecond", err)
	}
}

func TestBenchAgentCountsWhatAServerComputesAgain(t *testing.T) {
	base := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-l").base
	var report bench.AgentReport
	out := mustLutra(t, "bench", "agent", "--json", "--url", base+"/v1", "--turns", "4", "--words", "24", "--max-tokens", "4", "--compare", "itself="+base+"/v1")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Requests != 5 || len(report.Servers) != 2 {
		t.Fatalf("bench agent = %s", out)
	}
	first, again := report.Servers[0], report.Servers[1]
	if first.Cached == 0 || again.Cached <= first.Cached || again.Name != "itself" || first.Longest < 100 || first.First <= 0 || first.Recomputed > first.Prompt/4 {
		t.Errorf("bench agent = %s", out)
	}
}
