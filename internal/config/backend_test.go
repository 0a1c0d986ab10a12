package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBackendsAreThoseOfModelsThenOfAll(t *testing.T) {
	path := writeConfig(t, "backend: hexagon-go\nhexagon:\n  path: tiles\n  fallback: cpu\n  round: nf4\n  timeout: 5s\n  placement: naive\n  decode: npu\n"+
		"models:\n  - embedded: lutra-tiny-l\n  - embedded: lutra-tiny-s\n    backend: cpu\nverifiers:\n  - embedded: lutra-tiny-prm\n    backend: hexagon-qemu\n")
	c, err := Load(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"hexagon-go", "cpu"} {
		if got := c.BackendOf(c.Models[i]); got != want {
			t.Errorf("model %d runs on %s, want %s", i, got, want)
		}
	}
	if got := c.BackendOf(c.Verifiers[0].Model()); got != "hexagon-qemu" {
		t.Errorf("the verifier runs on %s", got)
	}
	o, err := c.Hexagon.Options()
	if err != nil || !c.Hexagon.Spare() || o.Path != "tiles" || o.Round != "nf4" || o.Timeout.Seconds() != 5 || o.Placement != "naive" || !o.Decode || o.Plan != nil {
		t.Errorf("options are %+v, %v", o, err)
	}
	if c, err := Load(path, []string{"LUTRA_BACKEND=cpu", "LUTRA_HEXAGON_PATH=lookup"}, nil); err != nil || c.BackendOf(c.Models[0]) != "cpu" || c.Hexagon.Path != "lookup" {
		t.Errorf("the environment sets %q and %q, %v", c.Backend, c.Hexagon.Path, err)
	}
}

func TestBackendsThatThereAreNotAreFaults(t *testing.T) {
	for text, want := range map[string]string{
		"backend: gpu\n": "backend: \"gpu\" is none of cpu, hexagon-go",
		"models:\n  - embedded: lutra-tiny-s\n    backend: hexagon-goo\n": "models[0].backend: \"hexagon-goo\" is none of",
		"verifiers:\n  - embedded: lutra-tiny-prm\n    backend: x\n":      "verifiers[0].backend",
		"hexagon:\n  path: fast\n":                                        "hexagon.path: \"fast\" is none of auto, lookup, tiles",
		"hexagon:\n  round: q3\n":                                         "hexagon.round",
		"hexagon:\n  fallback: gpu\n":                                     "hexagon.fallback: \"gpu\" is none of none, cpu",
		"hexagon:\n  timeout: 0s\n":                                       "hexagon.timeout",
		"hexagon:\n  timeout: 2h\n":                                       "hexagon.timeout",
		"hexagon:\n  keys: 4GiB\n":                                        "hexagon.keys: 4.00 GiB is more than 1.00 GiB",
		"hexagon:\n  keys: some\n":                                        "hexagon.keys: \"some\" is not a size",
		"hexagon:\n  placement: gpu\n":                                    "hexagon.placement: \"gpu\" is none of cpu, naive, attention, all",
		"hexagon:\n  decode: gpu\n":                                       "hexagon.decode: \"gpu\" is none of cpu, npu",
		"hexagon:\n  plan: plan.json\n":                                   "hexagon.plan: no model has a Hexagon backend",
	} {
		if _, err := Load(writeConfig(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

func TestAPlanThatIsNoneNamesItsFile(t *testing.T) {
	for text, want := range map[string]string{"": "EOF", `{"kind": "other"}`: `its kind is "other"`} {
		path := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h := DefaultHexagon()
		h.Plan = path
		if _, err := h.Options(); err == nil || !strings.Contains(err.Error(), "hexagon.plan: "+path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want the file's name and %q in it", text, err, want)
		}
	}
}
