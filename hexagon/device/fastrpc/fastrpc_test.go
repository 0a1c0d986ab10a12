//go:build fastrpc && linux

package fastrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// standin builds libcdsprpc.so and the DSP's program that stands in for a DSP, once.
var standin = sync.OnceValues(func() (library string, err error) {
	dir, err := os.MkdirTemp("", "standin")
	if err != nil {
		return "", err
	}
	library = filepath.Join(dir, "libcdsprpc.so")
	for _, command := range [][]string{
		{"make", "-s", "-C", "../../dsp", "build/skel-emulated.elf"},
		{"cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library, "../../dsp/standin/cdsprpc.c"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", errors.New(strings.Join(command, " ") + ": " + err.Error() + "\n" + string(out))
		}
	}
	return library, nil
})

// program is the library, as a program under the emulator.
var program = "../../dsp/build/skel-emulated.elf"

func open(t *testing.T, o Options, fault string) (*Device, error) {
	t.Helper()
	sweep.Hexagon(t, "cc", "make", "clang-19", "ld.lld-19", "qemu-hexagon")
	library, err := standin()
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LUTRA_STANDIN_DSP", "qemu-hexagon -cpu v67 "+program)
	t.Setenv("LUTRA_STANDIN_FAULT", fault)
	o.Library = library
	if o.Memory == 0 {
		o.Memory = device.TCMBytes + 4<<20
	}
	d, err := Open(o)
	if d != nil {
		t.Cleanup(func() { d.Close() })
	}
	return d, err
}

// work is every operation once, with results behind TCM: packets, and where and how
// long the results are. fill puts operands into memory.
func work(memory []byte) (packets []device.Packet, results [][2]int) {
	r := rand.New(rand.NewPCG(1, 9))
	next := uint32(device.TCMBytes)
	alloc := func(n int) uint32 {
		at := next
		next += uint32(n+127) &^ 127
		return at
	}
	halves := func(n int) uint32 {
		at := alloc(2 * n)
		for i := range device.View[uint16](memory, at, n) {
			device.View[uint16](memory, at, n)[i] = layout.F16(float32(r.NormFloat64()))
		}
		return at
	}
	integers := func(n, bound int) uint32 {
		at := alloc(2 * n)
		for i := range device.View[int16](memory, at, n) {
			device.View[int16](memory, at, n)[i] = int16(r.IntN(2*bound+1) - bound)
		}
		return at
	}
	result := func(n int) uint32 {
		at := alloc(n)
		results = append(results, [2]int{int(at), n})
		return at
	}
	add := func(op device.Op, args ...uint32) {
		p := device.Packet{Op: op}
		copy(p.Args[:], args)
		packets = append(packets, p)
	}
	const m, k, tcm = 512, 512, 1 << 20 // four workers have a strip each
	x, codes, scales, offsets := integers(3*k, device.MaxActivation), integers(m*k/8, 32767), integers(m*k/64, 32767), integers(m*k/64, 32767)
	values, groups := halves(16), alloc(4*layout.SuperGroupBytes)
	for i := range 4 * layout.SuperGroupBytes {
		memory[int(groups)+i] = byte(r.Uint32()) &^ 0x40
	}
	states := alloc(32 * device.StateBytes)
	results = append(results, [2]int{int(states), 32 * device.StateBytes})
	for i := range 32 {
		copy(device.View[uint32](memory, states+uint32(i*device.StateBytes), 2), []uint32{0xfbff, uint32(7 * i)})
	}
	add(device.OpPrecompute, tcm, 3, x, k)
	add(device.OpGEMV, result(3*4*m), codes, tcm, 3, scales, offsets, m, k, 2, 64, 1, 1, 7*tcm, device.GEMVTiles(1, 4), 256)
	const wide = 8192
	numbers := integers(4*wide, 16000)
	for i, n := range device.View[uint32](memory, numbers, 2*wide) {
		device.View[uint32](memory, numbers, 2*wide)[i] = n & 0xbfffffff // finite
	}
	add(device.OpGLU, result(4*wide), numbers, numbers+4*wide, 1, wide, 4*wide, 4*wide, 2)
	add(device.OpDequant, 2*tcm, codes, scales, offsets, values, 0, 0, k/64, k, 2, 64)
	add(device.OpVLUT16, 3*tcm, groups, 4, values)
	add(device.OpTileMul, 4*tcm, 2*tcm, 3*tcm, 1, 2*tcm+2048, 3*tcm, 1, 1, 1, 0x3000, 7*tcm)
	add(device.OpCopy, result(2048), 4*tcm, 2048)
	// All columns of a strip, more than the unit multiplies at once.
	add(device.OpByteTiles, 2*tcm, codes, k/64, 2)
	add(device.OpByteTiles, 2*tcm+128*k, codes, k/64, 2)
	add(device.OpByteTiles, 3*tcm, x, 16, 4)
	add(device.OpTileMulBytes, 4*tcm, 2*tcm, 3*tcm, 40, 1, 2, 7*tcm)
	add(device.OpCopy, result(6*2048), 4*tcm, 6*2048)
	add(device.OpExpTable, 5*tcm)
	add(device.OpSoftmax, 2*tcm, 5*tcm, states, 6*tcm, 1, 4)
	add(device.OpCopy, result(4*2048), 2*tcm, 4*2048)
	add(device.OpCopy, result(2048), 6*tcm, 2048)
	for range 300 {
		add(device.OpPing) // more packets than a message has
	}
	return packets, results
}

func TestEveryOperationThroughFastRPCEqualsTheGoDevice(t *testing.T) {
	d, err := open(t, Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := equalsGo(t, d); err != nil {
		t.Error(err)
	}
}

// equalsGo says what of every operation differs from the Go device's.
func equalsGo(t *testing.T, d *Device) error {
	plain, err := device.NewGo(nil, len(d.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	packets, results := work(d.Memory())
	copy(plain.Memory(), d.Memory())
	for _, dev := range []device.Device{plain, d} {
		if _, err := dev.Run(t.Context(), packets); err != nil {
			return err
		}
	}
	for i, r := range results {
		got, want := d.Memory()[r[0]:][:r[1]], plain.Memory()[r[0]:][:r[1]]
		if bytes.Count(want, []byte{0}) == len(want) {
			t.Errorf("result %d is all zeros", i)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("result %d differs", i)
		}
	}
	if n := bytes.Count(d.Memory()[:device.TCMBytes], []byte{0}); n != device.TCMBytes {
		return errors.New("the DSP's TCM is not its own")
	}
	return nil
}

// The stand-in shows a library that reads old lines of its cache, one that leaves the host old lines, and one
// that keeps the tile unit.
func TestALibraryThatDoesNotFlushOrKeepsTheTileUnitIsSeen(t *testing.T) {
	sweep.Hexagon(t, "cc", "make", "clang-19", "ld.lld-19", "qemu-hexagon")
	if _, err := standin(); err != nil {
		t.Fatal(err)
	}
	defer func(right string) { program = right }(program)
	dir := filepath.Join(t.TempDir(), "dsp")
	if out, err := exec.Command("cp", "-a", "../../dsp", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program = filepath.Join(dir, "build/skel-emulated.elf")
	skel := filepath.Join(dir, "device/skel.c")
	text, err := os.ReadFile(skel)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []string{"lines_write_back(touched, n, 1);", "lines_write_back(touched, n, 0);", "queue_rest();"} {
		if !bytes.Contains(text, []byte(fault)) {
			t.Fatalf("skel.c has no %q any more", fault)
		}
		if err := os.WriteFile(skel, bytes.Replace(text, []byte(fault), nil, 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("make", "-s", "-C", dir, "build/skel-emulated.elf").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		d, err := open(t, Options{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err = equalsGo(t, d); err == nil {
			t.Errorf("a library without %q passes", fault)
		}
		d.Close() // the stand-in has one session
		t.Log(err)
	}
}

func TestTheDSPRefusesBadPackets(t *testing.T) {
	d, err := open(t, Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	packets := make([]device.Packet, 270)
	for i := range packets {
		packets[i].Op = device.OpPing
	}
	packets[266] = device.Packet{Op: device.OpCopy, Args: [15]uint32{0, 128, uint32(len(d.Memory()))}}
	_, err = d.Run(t.Context(), packets)
	var refused *device.PacketError
	if !errors.As(err, &refused) || refused.Index != 266 || refused.Status != device.StatusRange {
		t.Error(err)
	}
	if _, err := d.Run(t.Context(), packets[:3]); err != nil {
		t.Error("after that:", err)
	}
}

func TestWhatFastRPCCannotDoIsAnError(t *testing.T) {
	for fault, says := range map[string]string{
		"unsigned": "unsigned process failed with 0xe", "open": "opening", "memory": "bytes of memory for the DSP",
		"mmap": "mapping", "queue": "making a queue", "export": "exporting", "invoke": "starting",
	} {
		if _, err := open(t, Options{}, fault); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", fault, err)
		}
	}
	if _, err := Open(Options{Library: "/no/such/library.so"}); err == nil || !strings.Contains(err.Error(), "Snapdragon") {
		t.Error(err)
	}
	if _, err := Open(Options{Memory: 4096}); err == nil || !strings.Contains(err.Error(), "bytes of memory") {
		t.Error(err)
	}
}

func TestADSPThatDiesHangsOrLiesIsAnError(t *testing.T) {
	pings := []device.Packet{{Op: device.OpPing}, {Op: device.OpPing}}
	for fault, says := range map[string]string{
		"silence": "no answer", "death": "failed with", "write": "writing to the queue", "read": "reading from the queue",
		"short": "160 bytes", "nonsense": "the answer is none", "miscount": "3 of 2 packets",
	} {
		t.Run(fault, func(t *testing.T) {
			limit := 5 * time.Minute
			if fault == "silence" {
				limit = 100 * time.Millisecond
			}
			d, err := open(t, Options{Limit: limit}, fault)
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.Run(t.Context(), pings)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Fatalf("error %v, not of %q", err, says)
			}
			if _, again := d.Run(t.Context(), pings); again != err {
				t.Error("after that:", again)
			}
		})
	}
	d, err := open(t, Options{}, "silence")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Run(ctx, pings); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
