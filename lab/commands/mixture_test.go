package commands

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// mixtureFiles are a mixture of random weights, a plan for it that lutra makes, and that
// plan with groups of the capacities that are asked for.
func mixtureFiles(t *testing.T, capacities ...int) (model string, plans []string) {
	t.Helper()
	dir := t.TempDir()
	model = filepath.Join(dir, "mixture.gguf")
	f, err := os.Create(model)
	if err == nil {
		err = errors.Join(synthetic.Write(f, synthetic.Shape{Name: "tiny experts", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320,
			Context: 1024, RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 12, Used: 3, FFN: 256}},
			synthetic.Options{Blocks: gguf.TQ2_0, Head: gguf.F16, Seed: 7}), f.Close())
	}
	text := filepath.Join(dir, "text.txt")
	if err == nil {
		err = os.WriteFile(text, []byte(strings.Repeat("The otter swims. ", 100)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	stats := filepath.Join(dir, "stats.json")
	mustLutra(t, "npu", "calibrate", "--model", model, "--data", text, "--out", stats)
	write := func(name, text string) {
		plans = append(plans, filepath.Join(dir, name))
		if err := os.WriteFile(plans[len(plans)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made := mustLutra(t, "npu", "plan", model, "--moe", "--calibration", stats, "--chunk", "256", "--json")
	write("plan.json", made)
	for _, n := range capacities {
		p, err := experts.ReadPlan(strings.NewReader(made))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Layers {
			for j := range p.Layers[i].Groups {
				p.Layers[i].Groups[j].Capacity, p.Layers[i].Groups[j].Placement = n, experts.NPU
			}
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		write("plan-of-"+strings.Repeat("i", n/32)+".json", string(raw))
	}
	return model, plans
}

func TestAPlanOfExpertsRunsAndItsCapacitiesChangeNoLogits(t *testing.T) {
	model, plans := mixtureFiles(t, 256, 64)
	dir := t.TempDir()
	ids, out := filepath.Join(dir, "ids"), filepath.Join(dir, "logits.f32")
	if err := os.WriteFile(ids, []byte(strings.Repeat("5 9 200 17 3 250 81 33 ", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	logits := func(args ...string) string {
		mustLutra(t, append([]string{"logits", "--model", model, "--backend", "hexagon-go", "--tokens", ids, "--out", out}, args...)...)
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	unbound := logits("--npu-plan", plans[1])
	if logits("--npu-plan", plans[2]) != unbound {
		t.Error("rows beyond a capacity get other bits on the host")
	}
	if mustLutra(t, "logits", "--model", model, "--tokens", ids, "--out", out); logits("--placement", "cpu") != string(must(os.ReadFile(out))) {
		t.Error("with nothing on the NPU the logits are not the CPU's")
	}
	_ = logits("--npu-plan", plans[0])
}

func TestPlansAndPlacementsThatCannotBeAreErrorsThatNameThem(t *testing.T) {
	model, plans := mixtureFiles(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ask", "--backend", "hexagon-go", "--placement", "gpu", "hi"}, `--placement: "gpu" is none of cpu, naive, attention, all`},
		{[]string{"ask", "--npu-plan", plans[0], "hi"}, "--npu-plan: no model has a Hexagon backend"},
		{[]string{"ask", "--backend", "hexagon-go", "--npu-plan", model + ".no", "--model", model, "hi"}, "hexagon.plan: open "},
		{[]string{"ask", "--backend", "hexagon-go", "--npu-plan", model, "--model", model, "hi"}, "hexagon.plan: " + model},
		{[]string{"perplexity", "--npu-plan", plans[0], "--model", model, "--file", plans[0]}, "--npu-plan: the backend is the CPU"},
		{[]string{"perplexity", "--placement", "gpu", "--model", model, "--file", plans[0]}, "--placement"},
	} {
		if _, err := lutra(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("lutra %v: error %v, want %q in it", c.args, err, c.want)
		}
	}
}

func TestAServerCountsWhatBecomesOfRowsAtExperts(t *testing.T) {
	model, plans := mixtureFiles(t, 32)
	s := serving(t, "--addr", "127.0.0.1:0", "--model", model, "--backend", "hexagon-go", "--npu-plan", plans[1])
	var answers [2]string
	for i := range answers {
		body := `{"model": "default", "temperature": 0, "max_tokens": 8, "prompt": "` + strings.Repeat("The otter swims in the river. ", 10) + `"}`
		resp, err := http.Post(s.base+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		var answer struct{ Choices []struct{ Text string } }
		if err = errors.Join(err, json.Unmarshal(raw, &answer)); err != nil || len(answer.Choices) != 1 {
			t.Fatalf("%v: %s", err, raw)
		}
		answers[i] = answer.Choices[0].Text
	}
	if answers[0] != answers[1] {
		t.Errorf("the same prompt is answered %q, then %q", answers[0], answers[1])
	}
	for _, series := range []string{`launches_total{model_name="mixture"}`, `expert_rows_total{fate="device",model_name="mixture"}`,
		`expert_rows_total{fate="overflow",model_name="mixture"}`, `expert_rows_total{fate="decode",model_name="mixture"}`} {
		if n := scrape(t, s.base+"/metrics", "lutra_device_"+series); n <= 0 {
			t.Errorf("%s is %v", series, n)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestAnEvaluationIsOfOneWayToRunExperts(t *testing.T) {
	model, plans := mixtureFiles(t, 32)
	out := filepath.Join(t.TempDir(), "report")
	eval := func(args ...string) error {
		_, err := lutra(t, append([]string{"eval", "--model", model, "--backend", "hexagon-go", "--limit", "1", "--methods", "single", "--n", "1",
			"--max-tokens", "4", "--out", out}, args...)...)
		return err
	}
	if err := eval("--npu-plan", plans[1]); err != nil { // its time is not modelled, which nobody asked for
		t.Fatal(err)
	}
	if err := eval("--npu-plan", plans[1], "--placement", "attention"); err == nil || !strings.Contains(err.Error(), "journal") {
		t.Errorf("with another placement the journal is taken up: %v", err)
	}
	if err := eval("--fresh", "--soc", "8gen3"); err == nil || !strings.Contains(err.Error(), "mixtures of experts") {
		t.Errorf("the time of a mixture is modelled: %v", err)
	}
}
