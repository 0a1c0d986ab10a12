package qemu

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/dsp"
	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/internal/sweep"
)

const sources = "../../dsp"

// made builds a program of hexagon/dsp, or skips the test where nothing can.
func made(t *testing.T, name string) string {
	t.Helper()
	sweep.Hexagon(t, "make", "clang-19", "ld.lld-19", "qemu-hexagon")
	if out, err := exec.Command("make", "-s", "-C", sources, name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(sources, name)
}

// Limits of what is right, and of what is taken for a hang where a fault may have made one.
const patient, hung = 5 * time.Minute, 20 * time.Second

// mistake has hexagon/dsp/emulator/mistakes.c make one, which with a fault may end in threads that wait for ever.
func mistake(t *testing.T, program, name string, limit time.Duration) (out, said []byte) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-hexagon", "-cpu", "v67", program)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(name), &stderr
	out, _ = cmd.Output()
	return out, stderr.Bytes()
}

// Each is a mistake that a chip would not forgive; hexagon/dsp/emulator/mistakes.c makes it.
func TestTheMachineForgivesNoMistakeThatAChipDoesNot(t *testing.T) {
	program := made(t, "build/mistakes.elf")
	make := func(name string) (out, said []byte) { return mistake(t, program, name, patient) }
	for mistake, says := range map[string]string{
		"a": "vgather to DDR", "b": "vgather from DDR", "c": "vgather to an address that is no multiple",
		"d": "HMX reads scales of columns", "e": "HMX reads scales of columns", "f": "HMX reads activations", "g": "HMX reads weights",
		"h": "HMX reads activations", "i": "HMX writes a tile", "j": "HMX reads activations",
		"O": "HMX reads activations in bytes", "P": "HMX reads codes", "Q": "HMX reads scales of planes", "R": "HMX writes a plane",
		"S": "a boundary of 256 KiB", "T": "a boundary of 256 KiB", "U": "a boundary of 256 KiB",
		"k": "touched before it is waited for", "l": "touched before it is waited for", "m": "ends with a transfer under way",
		"n": "dmstart while transfers are under way", "o": "transfers that are not under way", "p": "no multiples of 128",
		"q": "a bypass for a source that is TCM", "r": "or that is done",
		"A": "a descriptor is written before its transfer is done", "B": "not the last one", "C": "dmlink to a transfer that is not under way",
		"E": "touched before it is waited for", "F": "what DMA reads is written", "G": "transfers that are not under way",
		"I": "a result of the tile unit is touched", "J": "a result of the tile unit is touched", "K": "a tile is written while", "L": "ends with a product",
		"W": "used without its lock", "X": "which nobody has locked", "Y": "locked twice", "Z": "before the tile unit is given back",
		"v": "two shards write one vector", "w": "a shard reads what another writes", "x": "two shards write one vector of TCM",
	} {
		if out, said := make(mistake); len(out) != 0 || !strings.Contains(string(said), "the machine's fault: ") || !strings.Contains(string(said), says) {
			t.Errorf("mistake %s: the program says %q and %q, not %q", mistake, out, said, says)
		}
	}
	for right, want := range rights {
		if out, said := make(right); !bytes.Equal(out, want) || len(said) != 0 {
			t.Errorf("%s: the program says %x and %q, not %x", right, out, said, want)
		}
	}
}

// rights holds the outputs of the cases that are no mistakes.
var rights = map[string][]byte{
	"0": {7}, "s": {0xa5}, "t": {0xa5}, // nothing wrong; DMA that is not waited for; what a request left in TCM
	"y": {7}, "z": sumsOfThreads, // vectors of their own; threads that are waited for
	"D": {0, 2},                                    // at most 512 transfers under way, of a ring that goes round
	"1": {7, 7, 0},                                 // transfers in their order
	"H": {7, 0xa5},                                 // the older of two transfers has come
	"M": {0xa6},                                    // what a product is to write
	"N": {1 + 2 + 20},                              // products in a thread's queue
	"V": {0, 0x58, 0, 3, 0},                        // 128 in fp16 and 768 in bytes, of tiles on both sides of a boundary
	"u": binary.LittleEndian.AppendUint64(nil, 20), // packets of the 24 that were waited for a gather
}

// sumsOfThreads holds the sums of 1 to 6 threads, a shard each of 20 operations that have 2 to 6.
var sumsOfThreads = []byte{20, 40, 56, 68, 76, 80}

func TestTCMIsLostBetweenRuns(t *testing.T) {
	d := open(t, Options{})
	copy(d.Memory()[device.TCMBytes:], "otter")
	to, from := packet(device.OpCopy, 4096, device.TCMBytes, 128), packet(device.OpCopy, device.TCMBytes+128, 4096, 128)
	for _, c := range []struct {
		runs [][]device.Packet
		want string
	}{{[][]device.Packet{{to, from}}, "otter"}, {[][]device.Packet{{to}, {from}}, "\xa5\xa5\xa5\xa5\xa5"}} {
		for _, packets := range c.runs {
			if _, err := d.Run(t.Context(), packets); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(d.Memory()[device.TCMBytes+128:][:5]); got != c.want {
			t.Errorf("after %d runs the copy is %q, want %q", len(c.runs), got, c.want)
		}
	}
}

// Lookups of every format read their weights from TCM, where DMA has brought them once for
// however many rows of activations, and spill their sums there.
func TestLookupsReadWeightsAndSpillSumsInTCM(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	const m, k, table = 512, 1024, 1 << 16
	for _, bits := range []uint32{1, 2, 4} {
		for _, group := range []uint32{32, 64, 128, k} {
			for _, n := range []uint32{1, 2, 7} {
				p := packet(device.OpGEMV, device.TCMBytes+3<<19, device.TCMBytes, table, n, device.TCMBytes+1<<19, device.TCMBytes+1<<20, m, k, bits, group, 1, 1, 4<<20, device.GEMVTiles(2, 1), 512)
				c, err := d.Run(t.Context(), []device.Packet{p})
				if err != nil {
					t.Fatal(err)
				}
				weights, moved := uint64(m*k/8*bits), uint64(m*k/8*bits+4*m*n)
				passes := uint64(map[uint32]int{1: 1, 2: 1, 7: 3}[n]) // four rows share codes, and two
				if group != k {                                       // scales and offsets
					moved += uint64(2 * m * k / group * 2)
				}
				want := device.Counts{Packets: c.Packets, Instructions: c.Instructions, Vector: c.Vector, Transfers: c.Transfers, Moved: moved, Flying: c.Flying,
					WeightsTCM: passes * weights / 128, SumsTCM: uint64(n * 4 * m / 128 * (k / 256)), Longest: c.Packets, HidesDMA: c.HidesDMA}
				if c != want {
					t.Errorf("W%d, groups of %d, %d rows: counted %+v, want %+v", bits, group, n, c, want)
				}
				// Of four tiles three are under way at once, and the last alone is looked up with none.
				if tiles := c.Transfers - uint64(n); c.Flying != max(3*tiles/4, uint64(n)) {
					t.Errorf("W%d, groups of %d, %d rows: %d transfers, at most %d at once", bits, group, n, c.Transfers, c.Flying)
				}
				if most := c.Packets * 3 / 5; c.HidesDMA < most || c.HidesDMA > c.Packets {
					t.Errorf("W%d, groups of %d, %d rows: DMA is under way beside %d of %d packets", bits, group, n, c.HidesDMA, c.Packets)
				}
			}
		}
	}
}

// A product by lookups has the first tiles of the next brought, which so come beside its own end and what stands between
// them; not where both have one scratch.
func TestLookupsBringTheNextProductsFirstTiles(t *testing.T) {
	d := open(t, Options{KeepTCM: true, Workers: 4})
	const m, k, table, buffers = 512, 1024, 1 << 16, 3
	behind := func(i int) uint32 { return uint32(device.TCMBytes + i<<17) }
	product := func(i int, scratch uint32) device.Packet {
		return packet(device.OpGEMV, behind(4+i), behind(i), table, 1, 0, 0, m, k, 2, k, 1, 1, scratch, device.GEMVTiles(1, 4), 256)
	}
	between := packet(device.OpAdd, behind(6), behind(7), 8, 1024, 4096, 4096, 0x3f800000)
	beside := func(scratch uint32) (hidden uint64) {
		packets := []device.Packet{product(0, 4<<20), between, product(1, scratch)}
		for i := range d.Memory()[behind(0):behind(2)] {
			d.Memory()[int(behind(0))+i] = byte(i * i >> 5)
		}
		want := bytes.Clone(d.Memory())
		for _, p := range packets {
			device.Define(want, p)
		}
		c, err := d.Run(t.Context(), packets)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(d.Memory()[behind(4):behind(7)], want[behind(4):behind(7)]) {
			t.Error("results differ")
		}
		// A shard of one strip has four tiles, each a transfer, of whose buffers each product has three.
		if c.Transfers != 2*4*(4+1) || c.Moved != 2*(m*k/4+4*m) || c.Flying < buffers {
			t.Errorf("%d transfers of %d bytes, %d under way at once", c.Transfers, c.Moved, c.Flying)
		}
		return c.HidesDMA
	}
	alone, err := d.Run(t.Context(), []device.Packet{between})
	if err != nil {
		t.Fatal(err)
	}
	if apart, same := beside(6<<20), beside(4<<20); apart < same+alone.Longest*9/10 {
		t.Errorf("DMA is under way beside %d packets, with one scratch beside %d; between the products there are %d", apart, same, alone.Longest)
	}
}

// A product of strips through the pipeline runs beside DMA and the tile unit but for its ends: while a strip is
// multiplied the next is unpacked and the one after brought. What has a copy or a product wait is counted here.
func TestStripsAreBroughtUnpackedAndMultipliedBesideEachOther(t *testing.T) {
	d := open(t, Options{})
	const strips, k, cols = 12, 512, 2
	r := rand.New(rand.NewPCG(12, 1))
	behind := &arena{d.Memory(), device.TCMBytes}
	values, codes := behind.uint16s(randomHalves(r, 4)), behind.bytes(randomBytes(r, strips*128*k/4), 128)
	x, y := behind.uint16s(randomHalves(r, cols*k*32)), behind.alloc(strips*4*cols*2048, 2048)
	const tcmX, tcmColumns, size = 1 << 20, 1 << 16, 4 * cols * 2048
	at := func(base uint32, buffer int) uint32 { return base + uint32(buffer)<<18 }
	packets := []device.Packet{packet(device.OpCopy, tcmX, x, cols*k*64)}
	_ = pipeline.Order(strips, true, func(j pipeline.Job) error {
		packed, tiles, out := at(2<<20, j.Buffer), at(3<<20, j.Buffer), at(4<<20, j.Buffer)
		packets = append(packets, map[pipeline.Stage]device.Packet{
			pipeline.Load:     packet(device.OpCopy, packed, codes+uint32(j.Tile)*128*k/4, 128*k/4),
			pipeline.Unpack:   packet(device.OpDequant, tiles, packed, 0, 0, values, 0, 0, k/64, k, 2, k, 0),
			pipeline.Multiply: packet(device.OpTileMul, out, tiles, tcmX, k/32, 0, 0, 0, 4, cols, 0x2c00, tcmColumns),
			pipeline.Store:    packet(device.OpCopy, y+uint32(j.Tile)*size, out, size),
		}[j.Stage])
		return nil
	})
	want := bytes.Clone(d.Memory())
	for _, p := range packets {
		device.Define(want, p)
	}
	c, err := d.Run(t.Context(), packets)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(d.Memory()[y:][:strips*size], want[y:][:strips*size]) {
		t.Error("results differ")
	}
	if c.Products != strips || c.Queued != 2 || c.Flying < 3 {
		t.Errorf("%d products, at most %d in the queue, %d transfers under way", c.Products, c.Queued, c.Flying)
	}
	// Of 12 strips the first is unpacked beside no product, and the last two steps want no vectors.
	if c.HidesTiles < c.Packets*10/12 || c.HidesDMA < c.Packets*10/12 || max(c.HidesTiles, c.HidesDMA) > c.Packets {
		t.Errorf("of %d packets %d are beside the tile unit, and %d beside DMA", c.Packets, c.HidesTiles, c.HidesDMA)
	}
}

// Two rows' gathers pass behind the sums of the two before, with few keys as with many.
func TestSoftmaxWaitsForNoGather(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	for _, c := range [][2]uint32{{1, 1}, {2, 1}, {1, 2}, {1, 9}, {3, 33}, {1, 64}} {
		rows, keys := c[0], c[1]
		counts, err := d.Run(t.Context(), []device.Packet{packet(device.OpSoftmax, 1<<20, 1<<16, 1<<17, 1<<18, rows, keys)})
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(rows * 16 * (keys + 1)); counts.Gathers != want || counts.Exposed != 0 {
			t.Errorf("%d tiles of rows, %d of keys: %d gathers, not %d, and %d packets wait for them", rows, keys, counts.Gathers, want, counts.Exposed)
		}
	}
}

func TestTheCommittedProgramsWereMadeOfTheseSources(t *testing.T) {
	var files []string
	for _, glob := range []string{"*/*.[ch]", "ablation/kernels/*.[ch]"} {
		found, err := filepath.Glob(filepath.Join(sources, glob))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	hash := sha256.New()
	for _, f := range append([]string{filepath.Join(sources, "Makefile")}, files...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(text)
	}
	want := "made of sources " + hex.EncodeToString(hash.Sum(nil))
	for name, program := range map[string][]byte{"lutra-emulator.elf": dsp.Emulator, "ablation/lutra-ablation.elf": dsp.Ablation} {
		if !bytes.Contains(program, []byte(want)) {
			t.Errorf("%s is not %s: make -C hexagon/dsp commit", name, want)
		}
	}
}

var built = flag.Bool("built", false, "build the device's program here, and hold it against the committed one")

// Compilers of one version may make other instructions. The results are the same, bit for
// bit, and the counts nearly so.
func TestAProgramBuiltHereDoesWhatTheCommittedOneDoes(t *testing.T) {
	if !*built {
		t.Skip("only with -built: it takes clang-19")
	}
	text, err := os.ReadFile(made(t, program))
	if err != nil {
		t.Fatal(err)
	}
	if err := newExercise().run(t, open(t, Options{Program: text, KeepTCM: true})); err != nil {
		t.Error(err)
	}
	here, recorded := countEach(t, open(t, Options{Program: text, KeepTCM: true})), countEach(t, open(t, Options{KeepTCM: true}))
	for i, c := range here {
		if r := recorded[i]; c.Packets > r.Packets+r.Packets/10 || c.Packets < r.Packets-r.Packets/10 {
			t.Errorf("%s: %d packets here, %d committed", c.what, c.Packets, r.Packets)
		}
	}
}
