//go:build fastrpc

package fastrpc

import (
	"math"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
)

func TestAStartThatFailsOnTheDSPNamesItsPart(t *testing.T) {
	for code, want := range map[int32]string{4<<16 | 2: "starting: having TCM and the tile unit failed with 0x40002 (AEE_ENOMEMORY)", 2: "starting failed with 0x2 (AEE_ENOMEMORY)"} {
		if err := check(StepStart, code); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%#x is %v, not %q", code, err, want)
		}
	}
}

// Of what a session can do without the report has the code; memory that a library cannot give names what it lacks.
func TestASessionGoesOnWithoutShortAnswers(t *testing.T) {
	for fault, want := range map[string]string{"": "", "latency": "asking for short answers failed with 0xe (AEE_EBADPARM)"} {
		d, err := open(t, Options{}, fault)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Describe().Without; !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("fault %q: %q, not %q", fault, got, want)
		}
		d.Close()
	}
	if (&library{}).alloc(math.MaxInt32+1) != nil {
		t.Error("rpcmem_alloc is asked for more than it can say")
	}
	if _, err := Open(Options{Memory: MaxMemory + 4096}); err == nil || !strings.Contains(err.Error(), "bytes of memory") {
		t.Error(err)
	}
	if _, err := open(t, Options{Memory: MostMemory("V73") + 4096}, "old"); err == nil || !strings.Contains(err.Error(), "that a session of V73 maps") {
		t.Error(err)
	}
	if MaxMemory > 1<<32-device.TCMBytes {
		t.Error("a session maps more than the DSP addresses")
	}
}
