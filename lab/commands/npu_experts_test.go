package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// writeMixture writes a small mixture of random weights, and a text.
func writeMixture(t *testing.T) (model, text string) {
	t.Helper()
	shape := synthetic.Shape{Name: "mixture", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 256,
		RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 8, Used: 2, FFN: 256}}
	var b bytes.Buffer
	if err := synthetic.Write(&b, shape, synthetic.Options{Blocks: gguf.TQ2_0, Head: gguf.F16, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	model, text = filepath.Join(dir, "mixture.gguf"), filepath.Join(dir, "text.txt")
	if err := errors.Join(os.WriteFile(model, b.Bytes(), 0o600), os.WriteFile(text, []byte(strings.Repeat("Otters swim. ", 60)), 0o600)); err != nil {
		t.Fatal(err)
	}
	return model, text
}

func TestAMixtureIsCalibratedAndPlanned(t *testing.T) {
	model, text := writeMixture(t)
	dir := t.TempDir()
	stats, svg := filepath.Join(dir, "stats.json"), filepath.Join(dir, "loads.svg")
	out := mustLutra(t, "npu", "calibrate", "--model", model, "--data", text, "--data", text, "--chunk", "64,128", "--out", stats, "--svg", svg)
	for _, want := range []string{"2 layers of 8 experts", "imbalance r", "100.0 %", "chunks of prompts"} {
		if !strings.Contains(out, want) {
			t.Errorf("the calibration does not say %q:\n%s", want, out)
		}
	}
	if data, err := os.ReadFile(svg); err != nil || len(data) < 1000 {
		t.Errorf("%s: %v, %d bytes", svg, err, len(data))
	}
	if _, err := calibration.Read(strings.NewReader(mustLutra(t, "npu", "calibrate", "--model", model, "--data", text, "--json"))); err != nil {
		t.Errorf("--json: %v", err)
	}
	out = mustLutra(t, "npu", "plan", model, "--moe", "--calibration", stats, "--launch", "0.001")
	for _, want := range []string{"on the front", "C_base", "modelled", "Groups of layer 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan does not say %q:\n%s", want, out)
		}
	}
	p, err := experts.ReadPlan(strings.NewReader(mustLutra(t, "npu", "plan", "--model", model, "--moe", "--calibration", stats, "--chunk", "64", "--group", "4", "--headroom", "1.5", "--ratio", "3", "--soc", "m2-max", "--json")))
	if err != nil || p.Chunk != 64 || p.GroupSize != 4 || p.Device.Name != "m2-max" || p.Layers[0].Imbalance != 3 || p.Shape.Model != "mixture" {
		t.Errorf("a plan as asked for: %v, %+v", err, p)
	}
	if out = mustLutra(t, "npu", "plan", model, "--bits", "4"); !strings.Contains(out, "The 8 experts of its layers are not in it") || !strings.Contains(out, "--moe") {
		t.Errorf("the plan of the rest does not point to --moe:\n%.600s", out)
	}
	if out = mustLutra(t, "npu", "plan", "phi-3.5-moe", "--moe", "--soc", "m2-ultra"); !strings.Contains(out, "there is no calibration") || strings.Contains(out, "What was weighed") {
		t.Errorf("a plan without calibration:\n%.600s", out)
	}
	var dense struct{ Model struct{ Experts int } }
	if err := json.Unmarshal([]byte(mustLutra(t, "npu", "plan", "qwen3-30b-a3b", "--json")), &dense); err != nil || dense.Model.Experts != 128 {
		t.Errorf("a shape with experts: %v, %+v", err, dense)
	}
}

func TestMixturesAreNotPlannedByNonsense(t *testing.T) {
	model, text := writeMixture(t)
	stats := filepath.Join(t.TempDir(), "stats.json")
	mustLutra(t, "npu", "calibrate", "--model", model, "--data", text, "--out", stats)
	for want, args := range map[string][]string{
		"--model is required":                {"npu", "calibrate", "--data", text},
		"--data FILE":                        {"npu", "calibrate", "--model", model},
		"chunks of [0 256] tokens":           {"npu", "calibrate", "--model", model, "--data", text, "--chunk", "256,0"},
		"--context: 0":                       {"npu", "calibrate", "--model", model, "--data", text, "--context", "0"},
		"--context: 4096 is longer":          {"npu", "calibrate", "--model", model, "--data", text, "--context", "4096"},
		"--group is for --moe":               {"npu", "plan", "tiny", "--group", "4"},
		"--prompt is not for --moe":          {"npu", "plan", model, "--moe", "--prompt", "4"},
		"--chunk: -4 is not positive":        {"npu", "plan", model, "--moe", "--chunk", "-4"},
		"the model is \"tiny\" already":      {"npu", "plan", "tiny", "--model", model},
		"it is for 2 layers":                 {"npu", "plan", "phi-3.5-moe", "--moe", "--calibration", stats},
		"no chunks of 100 tokens":            {"npu", "plan", model, "--moe", "--calibration", stats, "--chunk", "100"},
		"a capacity of all experts":          {"npu", "plan", model, "--moe", "--calibration", stats, "--capacity", "32", "--headroom", "2"},
		"an imbalance of 9 is outside":       {"npu", "plan", model, "--moe", "--calibration", stats, "--ratio", "9"},
		"an overflow of 2 is outside":        {"npu", "plan", model, "--moe", "--calibration", stats, "--most-overflow", "2"},
		"a context of -1 tokens":             {"npu", "plan", model, "--moe", "--context", "-1"},
		"weights of 3 bits":                  {"npu", "plan", model, "--moe", "--bits", "3"},
		`there is no chip "m2-ultra"`:        {"npu", "plan", "tiny", "--soc", "m2-ultra"},
		"groups of 9 experts are outside":    {"npu", "plan", model, "--moe", "--calibration", stats, "--group", "9"},
		"a capacity of 99999 or a headroom":  {"npu", "plan", model, "--moe", "--calibration", stats, "--capacity", "99999"},
		"a headroom of 0.5":                  {"npu", "plan", model, "--moe", "--calibration", stats, "--headroom", "0.5"},
		"chunks of 99999 tokens are outside": {"npu", "plan", model, "--moe", "--chunk", "99999"},
		"a device whose costs are":           {"npu", "plan", model, "--moe", "--launch", "1e30"},
	} {
		_, err := lutra(t, args...)
		var mistake usage.Error
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v gives %v, want a mistake of usage that says %q", args, err, want)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"kind": "lutra-experts-calibration", "sets": [{}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lutra(t, "npu", "plan", model, "--moe", "--calibration", bad); !errors.Is(err, experts.ErrFile) || !strings.Contains(err.Error(), bad) {
		t.Errorf("a bad calibration gives %v", err)
	}
	if _, err := lutra(t, "npu", "plan", "tiny", "--moe"); err == nil || !strings.Contains(err.Error(), "no mixtures of experts") {
		t.Errorf("a model without experts gives %v", err)
	}
	if _, err := lutra(t, "npu", "calibrate", "--model", "lutra-tiny-s", "--data", text); err == nil || !strings.Contains(err.Error(), "no mixtures of experts") {
		t.Errorf("calibrating a model without experts gives %v", err)
	}
}
