package engines

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// emulatorOfKnownPID has device emulators note their process in a file, the last one
// that is started. It skips where there is no emulator.
func emulatorOfKnownPID(t *testing.T) (pid func() int) {
	t.Helper()
	sweep.Hexagon(t, "qemu-hexagon")
	emulator, err := exec.LookPath("qemu-hexagon")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, note := filepath.Join(dir, "emulator"), filepath.Join(dir, "pid")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > %s\nexec %s -cpu v67 \"$@\"\n", note, emulator)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LUTRA_QEMU_HEXAGON", script)
	return func() int {
		raw, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func TestADeviceThatDiesEndsItsRequestsAndTheCPUGoesOnIfConfigured(t *testing.T) {
	for _, fallback := range []string{"none", "cpu"} {
		t.Run(fallback, func(t *testing.T) {
			pid := emulatorOfKnownPID(t)
			cfg := config.Default()
			cfg.Models = []config.Model{{Embedded: "lutra-tiny-l"}, {Embedded: "lutra-tiny-s", Backend: "hexagon-qemu"}}
			cfg.Verifiers, cfg.KV.Memory, cfg.Hexagon.Fallback = nil, "8MiB", fallback
			r := run(t, cfg)
			answer := r.answer
			good, bad := r.Hosts[0], r.Hosts[1]
			if err := errors.Join(answer(good), answer(bad)); err != nil {
				t.Fatal(err)
			}
			child, err := os.FindProcess(pid())
			if err == nil {
				err = child.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			var failed *batcher.FailedError
			var fault *batcher.FaultError
			err = answer(bad)
			if fallback == "none" {
				if !errors.As(err, &failed) || failed.Model != "lutra-tiny-s" {
					t.Errorf("the model answers %v, want a FailedError", err)
				}
				if err = answer(bad); !errors.As(err, &failed) {
					t.Errorf("the model then answers %v, want the FailedError again", err)
				}
			} else {
				if !errors.As(err, &fault) || fault.Model != "lutra-tiny-s" {
					t.Errorf("the model answers %v, want a FaultError", err)
				}
				if err = answer(bad); err != nil {
					t.Errorf("the CPU does not go on: %v", err)
				}
			}
			if err := answer(good); err != nil {
				t.Errorf("the other model answers %v", err)
			}
			r.end()
			log := r.log.String()
			if !strings.Contains(log, `"backend":"hexagon-qemu"`) || fallback == "cpu" && strings.Count(log, "the CPU computes those to come") != 1 {
				t.Errorf("the log does not say what runs where, or of the fault once:\n%s", log)
			}
		})
	}
}

func TestTheLogSaysWhichLayersTheHostHasAndWhy(t *testing.T) {
	cfg := config.Default()
	cfg.Models = []config.Model{{Embedded: "lutra-tiny-s", Backend: "hexagon-go"}}
	cfg.Verifiers, cfg.KV.Memory, cfg.Hexagon.Path = nil, "8MiB", "int8"
	r := run(t, cfg)
	r.end()
	if want := `"on_the_host":["layers: products of the path int8 have the CPU's bits`; !strings.Contains(r.log.String(), want) {
		t.Errorf("the log does not say %s: %s", want, r.log)
	}
}
