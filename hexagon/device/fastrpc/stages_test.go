//go:build fastrpc

package fastrpc

import (
	"bytes"
	"errors"
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
	if _, err := Open(Options{Memory: MaxMemory + 4096}); err == nil || !strings.Contains(err.Error(), "bytes of memory") {
		t.Error(err)
	}
	if _, err := open(t, Options{Memory: MostMemory("V73") + 4096}, "old"); err == nil || !strings.Contains(err.Error(), "that a session of V73 maps") {
		t.Error(err)
	}
	if MaxMemory > 1<<32-device.TCMBytes || device.MappingBytes > math.MaxInt32 || mappings*device.MappingBytes < MaxMemory {
		t.Error("a session maps more than the DSP addresses, rpcmem_alloc can say or the library has mappings for")
	}
}

// A session of several mappings computes what lies in each, and ends whole where one cannot be made.
func TestASessionMapsItsMemoryInPieces(t *testing.T) {
	const second = device.MappingBytes
	d, err := open(t, Options{Memory: second + 4<<20}, "")
	if err != nil {
		t.Fatal(err)
	}
	m, n := d.Memory(), 4096
	for i := range n {
		m[second-n+i], m[second+1<<20+i] = byte(i*7), byte(i*11)
	}
	first, last := bytes.Clone(m[second-n:second]), bytes.Clone(m[second+1<<20:][:n])
	copyTo := func(to, from int) device.Packet {
		return device.Packet{Op: device.OpCopy, Args: [15]uint32{uint32(to), uint32(from), uint32(n)}}
	}
	if _, err := d.Run(t.Context(), []device.Packet{copyTo(second, second-n), copyTo(device.TCMBytes, second+1<<20)}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m[second:][:n], first) || !bytes.Equal(m[device.TCMBytes:][:n], last) {
		t.Error("a copy from one mapping to another brings other bytes")
	}
	var refused *device.PacketError
	if _, err := d.Run(t.Context(), []device.Packet{copyTo(second-n/2, device.TCMBytes)}); !errors.As(err, &refused) || refused.Status != device.StatusRange {
		t.Errorf("a copy to two mappings: %v", err)
	}
	d.Close()
	if _, err := open(t, Options{Memory: second + 4<<20}, "second memory"); err == nil || !strings.Contains(err.Error(), "no 4194304 bytes of memory for the DSP, of 1077936128") {
		t.Error(err)
	}
	if d, err = open(t, Options{}, ""); err != nil {
		t.Fatal("after that:", err)
	}
}
