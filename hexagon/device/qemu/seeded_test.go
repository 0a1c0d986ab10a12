package qemu

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/internal/sweep"
)

var faults = flag.Bool("faults", false, "seed faults into hexagon/dsp, which takes clang-19 and a minute")

// seeded are faults of the C sources: in a file, of dsp, a text and what replaces it.
// Tests that do not see each of them do not test the kernels.
var seeded = []struct{ file, from, to string }{
	{"kernels/precompute.c", "t[2] = HI(s0), t[4] = LO(s1)", "t[4] = HI(s0), t[2] = LO(s1)"},
	{"kernels/precompute.c", "0x01010101", "0x01010100"},
	{"kernels/precompute.c", "Q6_Q_vsetq2_R(at + 32)", "Q6_Q_vsetq2_R(128)"},
	{"kernels/gemv.c", "(tile >> 2 & 1) << 2", "(tile >> 1 & 1) << 2"},
	{"kernels/gemv.c", "table, sel | 2)", "table, sel)"},
	{"kernels/gemv.c", "splat_w(s << 3)", "splat_w(s << 2)"},
	{"kernels/gemv.c", "g->A == 2 ? ~0u", "g->A == 1 ? ~0u"},
	{"kernels/gemv.c", "Q6_Vw_vmpyo_VwVh_s1_rnd_sat", "Q6_Vw_vmpyo_VwVh_s1_sat"},
	{"kernels/gemv.c", "Q6_W_vshuff_VVR(LO(r23), LO(r01), -8)", "Q6_W_vshuff_VVR(LO(r01), LO(r23), -8)"},
	{"kernels/gemv.c", "dma_wait(now->t, now->n);", ""},
	{"kernels/gemv.c", "g->buffers + (at ? g->buffer : 0)", "g->buffers"},
	{"kernels/gemv.c", "V *sums = (V *)g->spill;", "V *sums = (V *)g->y;"},
	{"kernels/gemv.c", "(uint32_t)(k >> shift) * STRIP * 2", "(uint32_t)(k >> shift) * STRIP"},
	{"kernels/gemv.c", "(V *)g->spill + 4 * m", "(V *)g->spill"},
	{"kernels/dequant.c", "0x30201000u", "0x30102000u"},
	{"kernels/dequant.c", "0x0c080400u, second2)\nHALF(half_2", "0x0c040800u, second2)\nHALF(half_2"},
	{"kernels/dequant.c", "exchange(a, b, 64)", "exchange(b, a, 64)"},
	{"kernels/dequant.c", "hf_of_int(offsets[0], 12)", "hf_of_int(offsets[0], 11)"},
	{"kernels/dequant.c", "column * 32 >> shift", "column * 16 >> shift"},
	{"kernels/dequant.c", "T(0), T(1)}", "T(1), T(0)}"},
	{"kernels/dequant.c", "{1, 2 | 8}, {1, 1 | 4}", "{1, 1 | 4}, {1, 2 | 8}"},
	{"kernels/dequant.c", "splat_h(0xe480)", "splat_h(0xe400)"},
	{"kernels/gemv.c", "Q6_Vuw_vrmpyacc_VuwVubRub", "Q6_Vw_vrmpyacc_VwVubRb"},
	{"kernels/gemv.c", "Q6_V_vror_VR(once, -32)", "once"},
	{"kernels/precompute.c", "Q6_Vb_vpacko_VhVh", "Q6_Vb_vpacke_VhVh"},
	{"kernels/hf.h", "splat_w(20)", "splat_w(21)"},
	{"kernels/hf.h", "Q6_Vw_vadd_VwVw(rest, Q6_V_vand_VV(mant, one))", "rest"},
	{"kernels/hf.h", "splat_w(0x7bff)", "splat_w(0x7c00)"},
	{"kernels/hf.h", "splat_w(5)", "splat_w(6)"},
	{"kernels/vlut16.c", "splat_b(4)", "splat_b(3)"},
	{"kernels/softmax.c", "n - from < 32 ?", "n - from < 31 ?"},
	{"kernels/softmax.c", "-4 * p->row", "-4 * p->row - 4"},
	{"kernels/softmax.c", "t % 64 == 63", "t % 512 == 511"},
	{"kernels/softmax.c", "st[1].max << 16", "st[0].max << 16"},
	{"kernels/exp.c", "int i = 17", "int i = 4"},
	{"kernels/softmax.c", "gather(s, table,", "gather((V *)table - TILE, table,"},
	{"dispatch/dispatch.c", "a[2] % ALIGN == 0", "1"},
	{"dispatch/dispatch.c", "n++, to += a[5]", "n++, to += a[3]"},
	{"dispatch/dispatch.c", "at + n <= limit;", "limit;"},
	{"dispatch/dispatch.c", "&& (at >= TCM_BYTES || at + n <= TCM_BYTES)", ""},
	{"dispatch/dispatch.c", "memory(&c, a[3], k / 8);", ""},
	{"dispatch/dispatch.c", "(uint32_t)shard * 2 * tile", "0 * tile"},
	{"dispatch/dispatch.c", "MOVED(12, 4 * unit)", "AT(12)"},
	{"dispatch/shards.h", "TABLES_UNIT = 1024", "TABLES_UNIT = 256"},
	{"dispatch/shards.h", "(i < more ? i : more)", "0 * more"},
	{"kernels/softmax.c", "if (i > first)", "if (i)"},
	{"kernels/dequant.c", "const uint32_t stride = (uint32_t)d->row", "const uint32_t stride = (uint32_t)d->n"},
}

// seededThreads are faults of the pool: a missing barrier, and turns that are the same for all.
var seededThreads = []struct{ file, from, to string }{
	{"device/workers.c", "left = changed(&pool.left, left)", "left = 0 * changed(&pool.left, ~0u)"},
	{"device/workers.c", "if (me >= (turn & (TURN - 1))) continue;", ""},
}

const program = "build/lutra-emulator.elf"

// exercise runs a little of everything, and says whether all of it is as defined.
func exercise(t *testing.T, d *Device) error {
	r := rand.New(rand.NewPCG(10, 1))
	a := &arena{d.Memory(), 1 << 17}
	const m, k, table = 384, 512, 1 << 16 // three strips: some tiles have two, and the last one
	var packets []device.Packet
	add := func(op device.Op, args ...uint32) { packets = append(packets, packet(op, args...)) }
	x := a.int16s(extreme(r, k))
	tables, sums := a.alloc(8*k, 128), a.alloc(k/8, 128)
	add(device.OpPrecompute, tables, sums, x, k)
	long := uint32(2560) // columns of three shards of tables
	for form := range uint32(2) {
		add(device.OpPrecompute, a.alloc(8*int(long), 128), a.alloc(int(long)/8, 128), a.int16s(extreme(r, int(long))), long, form)
	}
	behind := &arena{d.Memory(), device.TCMBytes}
	codes, sc, of := behind.bytes(randomBytes(r, m*k/2), 128), behind.int16s(scales(r, m*k/32, false)), behind.int16s(scales(r, m*k/32, true))
	v := randomHalves(r, 16)
	v[0], v[1], v[2] = 0x8000, 0x7bff, 0x0001
	values := a.uint16s(v)
	for _, bits := range []uint32{1, 2, 4} {
		for _, group := range []uint32{32, 64, 128, k} {
			packets = append(packets, multiplication(a.alloc(4*m, 128), codes, tables, sums, sc, of, m, k, bits, group, 2, 9))
			add(device.OpDequant, a.alloc(8*8*2048, 128), codes, sc, of, values, 0, 0, k/64, k, bits, group)
		}
	}
	split, listed := a.alloc(2*k, 128), a.bytes(randomBytes(r, 16), 128)
	add(device.OpPrecompute, split, sums, x, k, 1)
	for _, form := range []struct{ bits, one, b uint32 }{{8, 1, layout.ByteZero}, {4, 0, listed}} {
		for _, group := range []uint32{32, 64, 128} {
			packets = append(packets, multiplication(a.alloc(4*m, 128), codes, split, sums, sc, of, m, k/2, form.bits, group, form.one, form.b))
			add(device.OpDequant, a.alloc(8*4*2048, 128), codes, sc, of, values, 0, 0, k/2/64, k/2, form.bits, group, 1)
		}
	}
	groups := randomBytes(r, 8*layout.SuperGroupBytes)
	for i := range groups {
		groups[i] &^= 0x40
	}
	add(device.OpVLUT16, a.alloc(8*512, 128), a.bytes(groups, 16), 8, values)
	add(device.OpExpTable, table)
	const keys = 300
	s := make([]uint16, keys*1024)
	for i := range 3 * 1024 {
		s[i] = layout.F16(-float32(math.Abs(r.NormFloat64())))
	}
	states := a.alloc(32*device.StateBytes, 128)
	for i := range 32 {
		st := device.View[uint32](d.Memory(), states+uint32(i*device.StateBytes), 2)
		st[ref.StateMax], st[ref.StateValid] = 0xfbff, uint32(i*31)
		if i%3 == 0 {
			st[ref.StateMax] = uint32(layout.F16(-r.Float32())) // and all keys: their sums are beyond a word
			st[ref.StateValid] = 1 << 20
		}
	}
	add(device.OpSoftmax, a.uint16s(s), table, states, a.alloc(2048, 128), 1, keys)

	pieces, list := behind.bytes(randomBytes(r, 4096), 128), behind.alloc(128, 128)
	copy(device.View[uint32](d.Memory(), list, 3), []uint32{pieces + 1024, pieces, pieces + 128})
	add(device.OpCollect, a.alloc(3*512, 128), list, 3, 256, 128, 512)

	want := bytes.Clone(d.Memory())
	for _, p := range packets {
		define(want, p)
	}
	if _, err := d.Run(t.Context(), packets); err != nil {
		return err
	}
	for _, p := range packets {
		for _, s := range scratch(p) {
			clear(d.Memory()[s[0]:][:s[1]])
			clear(want[s[0]:][:s[1]])
		}
	}
	if !bytes.Equal(d.Memory(), want) {
		return errors.New("results differ")
	}
	return refuses(t, d)
}

// refuses says whether packets are refused as they should be.
func refuses(t *testing.T, d *Device) error {
	r := rand.New(rand.NewPCG(10, 2))
	for range 2000 {
		p := mutated(r)
		status := p.Check(d.Memory())
		if status == device.StatusOK || p.Op == device.OpTileMul {
			continue
		}
		var refused *device.PacketError
		if _, err := d.Run(t.Context(), []device.Packet{p}); !errors.As(err, &refused) || refused.Status != status {
			return errors.New("a bad packet is not refused as it should be")
		}
	}
	return nil
}

func TestTheProgramPassesItsExercise(t *testing.T) {
	workers := []int{1, 2, 3, 4, 6}
	if !sweep.All(t) {
		workers = []int{3}
	}
	for i, n := range workers {
		if err := exercise(t, open(t, Options{KeepTCM: true, Workers: n, Seed: uint32(i + 1)})); err != nil {
			t.Errorf("%d workers: %v", n, err)
		}
	}
}

func TestSeededFaultsAreCaught(t *testing.T) {
	if !*faults {
		t.Skip("only with -faults: it builds the program once for each fault")
	}
	open(t, Options{KeepTCM: true}).Close()
	dir := t.TempDir()
	build := func(program string) []byte {
		if out, err := exec.Command("make", "-s", "-C", dir, program).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, program))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if err := os.CopyFS(dir, os.DirFS("../../dsp")); err != nil {
		t.Fatal(err)
	}
	if err := exercise(t, open(t, Options{Program: build(program), KeepTCM: true, Workers: 3, Seed: 1})); err != nil {
		t.Fatal("without a fault:", err)
	}
	const mistakes = "build/mistakes.elf"
	for i, f := range append(slices.Clone(seeded), seededThreads...) {
		file := filepath.Join(dir, f.file)
		right, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(right), f.from) == 0 {
			t.Fatalf("%s has no %q any more", f.file, f.from)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(right), f.from, f.to)), 0o644); err != nil {
			t.Fatal(err)
		}
		var noticed bool
		if i >= len(seeded) {
			build(mistakes)
			out, _ := mistake(t, filepath.Join(dir, mistakes), "z")
			noticed = !bytes.Equal(out, sumsOfThreads)
		} else {
			d := open(t, Options{Program: build(program), KeepTCM: true, Workers: 3, Seed: 1})
			noticed = exercise(t, d) != nil
			d.Close()
		}
		if !noticed {
			t.Errorf("%s: %q for %q is not noticed", f.file, f.to, f.from)
		}
		if err := os.WriteFile(file, right, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWrongBitOfPackedWeightsIsNoticed(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(11, 1))
	const m, k = 128, 256
	a := &arena{d.Memory(), device.Align}
	x := a.int16s(random16(r, k, device.MaxActivation))
	tables, sums, y := a.alloc(8*k, 128), a.alloc(k/8, 128), a.alloc(4*m, 128)
	behind := &arena{d.Memory(), device.TCMBytes}
	codes, sc := behind.bytes(randomBytes(r, m*k/4), 128), behind.int16s(scales(r, m*k/32, false))
	packets := []device.Packet{packet(device.OpPrecompute, tables, sums, x, k),
		multiplication(y, codes, tables, sums, sc, 0, m, k, 2, 32, 1, 1)}
	both(t, d, packets...)
	right := bytes.Clone(d.Memory()[y:][:4*m])
	for range 50 {
		at, bit := codes+uint32(r.IntN(m*k/4)), byte(1)<<r.IntN(8)
		d.Memory()[at] ^= bit
		if _, err := d.Run(t.Context(), packets); err != nil {
			t.Fatal(err)
		}
		differ := 0
		for i, b := range d.Memory()[y:][:4*m] {
			if b != right[i] {
				differ |= 1 << (i / 4 % 32)
			}
		}
		// A code of a small scale may round away; none of these do.
		if differ == 0 {
			t.Errorf("bit %#x at %#x makes no difference", bit, at)
		}
		d.Memory()[at] ^= bit
	}
}
