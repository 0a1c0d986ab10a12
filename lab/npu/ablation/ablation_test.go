package ablation

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestRecordedCountsAreThoseOfTheProgram(t *testing.T) {
	sweep.Hexagon(t, emulator()[0])
	_, out, err := Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != recorded {
		t.Errorf("the program counts\n%s\nrecorded are\n%s", out, recorded)
	}
}

func TestAWrongNumberIsAnError(t *testing.T) {
	if _, err := parse([]byte("check gemv 3\n")); err == nil || !strings.Contains(err.Error(), "gemv computes 3") {
		t.Errorf("three wrong numbers give %v", err)
	}
	if _, err := parse([]byte("gemv 0 1 2 3\n")); err == nil {
		t.Error("no units are counted")
	}
	if _, err := parse([]byte("gemv five\n")); err == nil {
		t.Error("half a line is counted")
	}
}

func TestEveryCheckedKernelIsRecorded(t *testing.T) {
	c := Recorded()
	for _, name := range []string{"gemv-2", "dequant-4", "convert-4", "super-groups", "tile-groups", "conventional-groups", "exp-lut", "vlut16-h"} {
		if !(c.Each(name) > 0) {
			t.Errorf("%s has no packets", name)
		}
	}
	if n := strings.Count(recorded, "check "); n < 6 {
		t.Errorf("%d checks", n)
	}
}
