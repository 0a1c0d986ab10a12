package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestTheSelftestOfTheDeviceInGoIsGreenAndSaved(t *testing.T) {
	sweep.Full(t)
	file := filepath.Join(t.TempDir(), "report.json")
	text := mustLutra(t, "npu", "selftest", "--backend", "hexagon-go", "--quick", "-o", file)
	if !strings.HasPrefix(text, "The emulated NPU computes every operation") {
		t.Errorf("it prints %s", text)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r selftest.Report
	if err := json.Unmarshal(data, &r); err != nil || !r.Verdict.OK || r.Running != "" || r.Chip || r.Coherence[0].Rounds != selftest.DefaultRounds {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestASelftestWithoutANPUSaysWhichCallFailedAndWhatToTry(t *testing.T) {
	if _, err := os.Stat("/dev/fastrpc-cdsp"); err == nil {
		t.Skip("this machine has an NPU")
	}
	file := filepath.Join(t.TempDir(), "report.json")
	status, said := complain(t, "npu", "selftest", "-o", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name": "loading the FastRPC library"`, `"try": "run a program that was built with -tags fastrpc`, "could not be opened: opening, loading the FastRPC library"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the report does not say %s: %s", want, data)
		}
	}
	if status != 1 || !strings.Contains(said, "the NPU failed") {
		t.Errorf("status %d, %s", status, said)
	}
}

func TestASelftestWhoseReportCannotBeSavedSaysSo(t *testing.T) {
	if status, said := complain(t, "npu", "selftest", "--backend", "hexagon-go", "--quick", "-o", filepath.Join(t.TempDir(), "none", "report.json")); status != 1 || !strings.Contains(said, "none") {
		t.Errorf("status %d, %s", status, said)
	}
}
