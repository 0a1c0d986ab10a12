package engines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/models/embedded"
)

// probeFileOf writes an embedded probe to a file.
func probeFileOf(t *testing.T, name string) string {
	t.Helper()
	data, err := embedded.Data(name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAProbeJudgesTheModelThatItWasTrainedOn(t *testing.T) {
	file := probeFileOf(t, "lutra-tiny-s-probe")
	for _, v := range []config.Verifier{{Name: "mine", Probe: file}, {Name: "mine", Path: file}, {Name: "mine", Embedded: "lutra-tiny-s-probe"}} {
		cfg := config.Default()
		cfg.KV.Memory, cfg.Threads = "8MiB", 1
		cfg.Models, cfg.Verifiers = []config.Model{{Embedded: "lutra-tiny-s"}, {Embedded: "lutra-tiny-l"}}, []config.Verifier{v}
		r, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{})
		if err != nil {
			t.Fatalf("%+v: %v", v, err)
		}
		small, large := r.Verifiers(r.Hosts[0].Model), r.Verifiers(r.Hosts[1].Model)
		if small.Default != "mine" || small.ByName["mine"] == nil || large.Default != "" || large.ByName["mine"] != nil {
			t.Errorf("%+v: the defaults are %q and %q, want mine and none", v, small.Default, large.Default)
		}
		r.Close()
	}
}

func TestAProbeOfAnotherModelIsRefusedByName(t *testing.T) {
	cfg := config.Default()
	cfg.KV.Memory, cfg.Threads = "8MiB", 1
	cfg.Models, cfg.Verifiers = []config.Model{{Embedded: "lutra-tiny-l"}}, []config.Verifier{{Name: "mine", Probe: probeFileOf(t, "lutra-tiny-s-probe")}}
	_, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{})
	if err == nil || !strings.Contains(err.Error(), "verifier mine: probe: it reads the states of") || !strings.Contains(err.Error(), "3 layers of 256") {
		t.Errorf("New = %v", err)
	}
	cfg.Partial = true // its model may come
	r, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cfg.Verifiers[0] = config.Verifier{Probe: "no such file"}
	if _, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("New = %v", err)
	}
}
