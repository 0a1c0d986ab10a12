package commands

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/usage"
)

func TestAPlanIsTextJSONAndADrawing(t *testing.T) {
	drawing := filepath.Join(t.TempDir(), "plan.svg")
	text := mustLutra(t, "npu", "plan", "lutra-tiny-s", "--svg", drawing)
	for _, want := range []string{"modelled", "K_lut", "TCM", "Timeline", "decode × 16", "Snapdragon 8 Elite Gen 5", "assumed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not say %q", want)
		}
	}
	if svg, err := os.ReadFile(drawing); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("the drawing: %v, %.40q", err, svg)
	}
	var p struct {
		Kind     string
		SoCs     []struct{ Decode []struct{ Tokens int } } `json:"socs"`
		Timeline struct {
			First []struct{ Unit string } `json:"first_jobs"`
		}
	}
	if err := json.Unmarshal([]byte(mustLutra(t, "npu", "plan", "llama-3.1-8b", "--soc", "elite", "--json")), &p); err != nil {
		t.Fatal(err)
	}
	if p.Kind != "modelled" || len(p.SoCs) != 4 || len(p.SoCs[0].Decode) != 6 || p.Timeline.First[0].Unit != "DMA" {
		t.Errorf("%+v", p)
	}
}

func TestAPlanReadsTheReportOfASelftest(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.json")
	r, err := selftest.Run(t.Context(), selftest.Options{Backend: "hexagon-go", Rounds: 2, Cases: 1,
		Open: func(bytes int, step func(string)) (device.Device, error) {
			return hexagon.OpenDevice("hexagon-go", bytes, hexagon.Options{}, step)
		}})
	if err != nil || !r.Verdict.OK {
		t.Fatalf("%v, %+v", err, r.Verdict)
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(report, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := mustLutra(t, "npu", "plan", "bitnet-2b", "--measured", report)
	for _, want := range []string{"which say nothing about a chip", "the fastest copy, by lutra npu selftest on hexagon-go, which is no chip"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not say %q: %s", want, text)
		}
	}
	if err := os.WriteFile(report, []byte(`{"kind":"other"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lutra(t, "npu", "plan", "bitnet-2b", "--measured", report); err == nil || !strings.Contains(err.Error(), report) {
		t.Errorf("a report of another kind: %v", err)
	}
}

func TestAPlanSaysWhichLayersTheHostHasAndWhy(t *testing.T) {
	for model, want := range map[string]string{"lutra-tiny-s": "none: the device computes all layers", "lutra-tiny-moe": "none: the device computes all layers"} {
		if text := mustLutra(t, "npu", "plan", model, "--layers"); !strings.Contains(text, "Layers on the host\n  "+want) || !strings.Contains(text, "A session of it maps ") {
			t.Errorf("%s: %s", model, text)
		}
	}
	if _, err := lutra(t, "npu", "plan", "bitnet-2b", "--layers"); err == nil || !strings.Contains(err.Error(), "is a shape") {
		t.Errorf("layers of a shape: %v", err)
	}
}

func TestNPUCommandsRefuseWhatTheyCannotDo(t *testing.T) {
	for want, args := range map[string][]string{
		"MODEL is missing":   {"npu", "plan"},
		"6502":               {"npu", "plan", "tiny", "--soc", "6502"},
		"3 bits":             {"npu", "plan", "tiny", "--bits", "3"},
		"outside":            {"npu", "plan", "tiny", "--prompt", "0"},
		"out of range":       {"npu", "plan", "tiny", "--clock", "NaN"},
		"--clock: 0":         {"npu", "plan", "tiny", "--clock", "0"},
		"--limit":            {"npu", "ablate", "accuracy", "--limit", "0"},
		"outside 1":          {"npu", "requests", "tiny", "--prompt", "0"},
		"beyond":             {"npu", "requests", "lutra-tiny-s", "--prompt", "4096"},
		"takes no arguments": {"npu", "doctor", "phone"},
		"unknown":            {"npu", "ablate", "speed"},
	} {
		_, err := lutra(t, args...)
		var mistake usage.Error
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v gives %v, want a mistake of usage that says %q", args, err, want)
		}
	}
	if _, err := lutra(t, "npu", "plan", "no-such-model"); err == nil || !strings.Contains(err.Error(), "llama-3.1-8b") {
		t.Errorf("an unknown model gives %v, want the shapes' names", err)
	}
}

func TestRequestsToANPUAreCounted(t *testing.T) {
	var steps []struct {
		Step     string
		Requests int
		Written  int `json:"bytes_written"`
	}
	if err := json.Unmarshal([]byte(mustLutra(t, "npu", "requests", "lutra-tiny-s", "--prompt", "8", "--round", "q8_0", "--json")), &steps); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || steps[0].Step != "prompt of 8" || steps[1].Requests != 1 || steps[1].Written == 0 {
		t.Errorf("%+v", steps)
	}
	if text := mustLutra(t, "npu", "requests", "lutra-tiny-s", "--prompt", "1"); !strings.Contains(text, "bytes written") {
		t.Errorf("no table:\n%s", text)
	}
}
