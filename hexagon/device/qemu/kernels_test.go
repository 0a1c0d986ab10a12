package qemu

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	drawn "github.com/lutra-lm/lutra/hexagon/device/exercise"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/internal/sweep"
)

const testMemory = device.TCMBytes + 2<<20

// open starts a device, or skips the test where there is no emulator. LUTRA_REQUIRE
// with "hexagon" in it makes that a failure.
func open(t testing.TB, o Options) *Device {
	t.Helper()
	sweep.Hexagon(t, strings.Fields(os.Getenv(EmulatorEnv) + " qemu-hexagon")[0])
	if o.Memory == 0 {
		o.Memory = testMemory
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// both runs packets on the device and by their definition, and compares all memory.
func both(t testing.TB, d *Device, packets ...device.Packet) device.Counts {
	t.Helper()
	want := bytes.Clone(d.Memory())
	counts, err := d.Run(t.Context(), packets)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets {
		device.Define(want, p)
		for _, s := range drawn.Scratch(p) {
			clear(d.Memory()[s[0]:][:s[1]])
			clear(want[s[0]:][:s[1]])
		}
	}
	if bytes.Equal(d.Memory(), want) {
		return counts
	}
	differ, first := 0, -1
	for i, b := range d.Memory() {
		if b != want[i] {
			if differ++; first < 0 {
				first = i
			}
		}
	}
	t.Fatalf("%v: %d bytes differ, the first at %#x: %x, not %x", packets, differ, first, d.Memory()[first&^3:][:4], want[first&^3:][:4])
	return counts
}

func random16(r *rand.Rand, n int, bound int) []int16 {
	s := make([]int16, n)
	for i := range s {
		s[i] = int16(r.IntN(2*bound+1) - bound)
	}
	return s
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// randomHalves are fp16 of any exponent but infinities'.
func randomHalves(r *rand.Rand, n int) []uint16 {
	s := make([]uint16, n)
	for i := range s {
		for s[i] = uint16(r.Uint32()); s[i]&0x7c00 == 0x7c00; s[i] = uint16(r.Uint32()) {
		}
	}
	return s
}

// extreme are activations whose sums of four are at their bounds.
func extreme(r *rand.Rand, k int) []int16 {
	x := make([]int16, k)
	for i := range x {
		x[i] = device.MaxActivation
		if r.IntN(2) == 0 && i%64 > 20 || i/64%3 == 1 {
			x[i] = -x[i]
		}
	}
	return x
}

var edges16 = []int16{-32768, -32767, -1, 0, 1, 2, 3, 1023, 1024, 1025, 2047, 2049, 4095, 16383, 16384, 32767}

func scales(r *rand.Rand, n int, edge bool) []int16 {
	s := random16(r, n, 32767)
	if edge {
		for i := range s {
			s[i] = edges16[r.IntN(len(edges16))]
		}
	}
	return s
}

func TestPrecomputeAndGEMVEqualTheirDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(1, 1))
	for _, bits := range []int{1, 2, 4} {
		for _, group := range []int{32, 64, 128, 0} {
			for round, k := range []int{256, 768, 1024} {
				m := []int{256, 128, 128}[round]
				t.Run(fmt.Sprintf("W%d group %d, %d×%d", bits, group, m, k), func(t *testing.T) {
					g := group
					if g == 0 {
						g = k
					}
					a := &arena{d.Memory(), device.Align}
					n := []int{3, 1, 2}[round]
					x := extreme(r, n*k)
					if round > 0 {
						x = random16(r, n*k, device.MaxActivation)
					}
					at := a.int16s(x)
					tables, y := a.alloc(n*device.TableStride(k, false), 128), a.alloc(4*m*n, 128)
					behind := &arena{d.Memory(), device.TCMBytes}
					codes := behind.bytes(randomBytes(r, m*k/8*bits), 128)
					sc, of := behind.int16s(scales(r, m*k/g, round == 1)), behind.int16s(scales(r, m*k/g, round == 2))
					both(t, d, packet(device.OpPrecompute, tables, uint32(n), at, uint32(k)))
					for _, offsets := range []uint32{0, of} {
						for _, affine := range [][2]uint32{{2, 15}, {1, 255}} {
							both(t, d, multiplication(y, codes, tables, uint32(n), sc, offsets, uint32(m), uint32(k), uint32(bits), uint32(g), affine[0], affine[1]))
						}
					}
				})
			}
		}
	}
}

func TestDequantEqualsItsDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(2, 1))
	for _, bits := range []int{1, 2, 4} {
		for _, group := range []int{32, 64, 128, 0} {
			t.Run(fmt.Sprintf("W%d group %d", bits, group), func(t *testing.T) {
				const m, k = 256, 512
				g := group
				if g == 0 {
					g = k
				}
				for round := range 4 {
					a := &arena{d.Memory(), device.Align}
					codes := a.bytes(randomBytes(r, m*k/8*bits), 128)
					sc, of := a.int16s(scales(r, m*k/g, round%2 == 1)), a.int16s(scales(r, m*k/g, round%2 == 1))
					v := make([]uint16, 1<<bits)
					for i := range v {
						v[i] = layout.F16(float32(i) - 3.5)
					}
					if round > 1 {
						v = randomHalves(r, 1<<bits)
					}
					values, tiles := a.uint16s(v), a.alloc(8*8*2048, 128)
					for _, offsets := range []uint32{0, of} {
						for _, span := range [][4]uint32{{0, 0, 8}, {1, 3, 2}, {1, 7, 1}, {0, 1, 3, 1}} { // the last of two strips
							both(t, d, packet(device.OpDequant, tiles, codes, sc, offsets, values, span[0], span[1], span[2], k, uint32(bits), uint32(g), 0, span[3]))
						}
					}
				}
			})
		}
	}
}

func TestVLUT16EqualsItsDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(3, 1))
	for _, n := range []int{1, 2, 7, 64} {
		a := &arena{d.Memory(), device.Align}
		groups := randomBytes(r, n*layout.SuperGroupBytes)
		for i := range n {
			for j, s := range randomHalves(r, 8) {
				groups[i*layout.SuperGroupBytes+2*j], groups[i*layout.SuperGroupBytes+2*j+1] = byte(s), byte(s>>8)
			}
		}
		values, dst := a.uint16s(randomHalves(r, 16)), a.alloc(512*n, 128)
		a.alloc(16, 16)
		both(t, d, packet(device.OpVLUT16, dst, a.bytes(groups, 16), uint32(n), values))
	}
}

func TestTheTableOfExponentialsEqualsItsDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	both(t, d, packet(device.OpExpTable, 1<<16))
}

func TestSoftmaxEqualsItsDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(4, 1))
	const table = 1 << 16
	both(t, d, packet(device.OpExpTable, table))
	for _, shape := range [][2]int{{1, 1}, {2, 3}, {1, 9}, {3, 4}, {1, 300}} {
		for round := range 3 {
			rows, keys := shape[0], shape[1]
			a := &arena{d.Memory(), 1 << 17}
			s := make([]uint16, rows*keys*1024)
			for i := range s {
				s[i] = layout.F16(float32(r.NormFloat64() * 6))
			}
			switch {
			case round == 1:
				s = randomHalves(r, len(s))
			case keys == 300: // sums that no word holds
				clear(s)
			}
			scores, diag, states := a.uint16s(s), a.alloc(rows*2048, 128), a.alloc(rows*32*device.StateBytes, 128)
			for i := range rows * 32 {
				st := device.View[uint32](d.Memory(), states+uint32(i*device.StateBytes), ref.StateWords)
				st[ref.StateMax], st[ref.StateValid] = 0xfbff, uint32(r.IntN(keys*32+1))
				switch {
				case round == 2:
					st[ref.StateMax], st[ref.StateValid] = uint32(randomHalves(r, 1)[0]), r.Uint32()
				case i%5 == 0:
					st[ref.StateMax], st[ref.StateValid] = uint32(layout.F16(5)), uint32(keys*32)
				}
			}
			both(t, d, packet(device.OpSoftmax, scores, table, states, diag, uint32(rows), uint32(keys)))
		}
	}
}

func TestSoftCapsEqualTheirDefinitionAndWaitForNoGather(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	for i, n := range []uint32{1, 2, 3, 40} {
		d := open(t, Options{KeepTCM: true, Workers: []int{1, 2, 3, 4}[i], Seed: uint32(i)})
		a := &arena{d.Memory(), 1 << 17}
		table := a.uint16s(randomHalves(r, 1<<15))
		c := both(t, d, packet(device.OpSoftCap, a.uint16s(randomHalves(r, int(n)*1024)), table, n))
		if i == 0 && (c.Gathers != uint64(16*n) || c.Exposed != 0) {
			t.Errorf("%d tiles: %d gathers, of which some are waited for %d packets", n, c.Gathers, c.Exposed)
		}
	}
}

func TestTilesAreMultipliedInTheirPlaceInTheOrder(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(8, 1))
	a := &arena{d.Memory(), layout.TileBytes}
	tiles := func(n int) uint32 {
		s := make([]uint16, n*1024)
		for i := range s {
			s[i] = layout.F16(float32(r.NormFloat64()))
		}
		return a.uint16s(s)
	}
	act, wgt, act1, wgt1 := tiles(2*3), tiles(2*3), tiles(2), tiles(2)
	moved, out := a.alloc(2*3*2048, 128), a.alloc(2*2*2048, 128)
	result := a.alloc(2*2*2048, 128)
	both(t, d, packet(device.OpCopy, moved, act, 2*3*2048),
		packet(device.OpTileMul, out, moved, wgt, 3, act1, wgt1, 1, 2, 2, 0x3400, 1<<20),
		packet(device.OpTileMul, act, out, wgt, 2, 0, 0, 0, 2, 1, 0x3c00, 1<<20),
		packet(device.OpCopy, result, out, 2*2*2048))
}

func TestTilesOfBytesAreMultipliedExactly(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(31, 1))
	a := &arena{d.Memory(), layout.TileBytes}
	const k, wide = 256, 3
	lanes, act, planes := a.bytes(randomBytes(r, wide*k*32), 2048), a.alloc(k*128, 2048), a.alloc(2*wide*device.BytePlanes*2048, 2048)
	codes, columns := a.bytes(randomBytes(r, 128*k/2), 128), a.alloc(device.ByteColumnsBytes, device.ByteColumnsBytes)
	for _, bits := range []uint32{1, 2, 4} {
		for _, n := range []uint32{1, 3, k / 64} {
			both(t, d, packet(device.OpByteTiles, act, codes, n, bits), packet(device.OpTileMulBytes, planes, act, lanes, 2*n, 2, wide, columns))
		}
	}
}

func TestCopyAndPing(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	copy(d.Memory(), randomBytes(rand.New(rand.NewPCG(5, 1)), 4096))
	both(t, d, packet(device.OpPing), packet(device.OpCopy, testMemory-2048, 128, 2048))
}

func TestCollectBringsPiecesThatLieApart(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(12, 1))
	copy(d.Memory()[device.TCMBytes:], randomBytes(r, 1<<20))
	table := uint32(device.TCMBytes + 1<<20)
	for _, n := range []uint32{1, 2, 64, 65, 200} {
		for i := range n {
			device.View[uint32](d.Memory(), table, int(n))[i] = device.TCMBytes + 128*uint32(r.IntN(8000))
		}
		c := both(t, d, packet(device.OpCollect, 1<<16, table, n, 256, 128, 384))
		if c.Transfers != uint64(n) || c.Moved != uint64(256*n) {
			t.Errorf("%d pieces are %d transfers of %d bytes", n, c.Transfers, c.Moved)
		}
	}
	for _, outside := range []uint32{0, device.TCMBytes - 256, testMemory - 256, 1<<32 - 128, 1<<32 - 256, device.TCMBytes + 1} {
		device.View[uint32](d.Memory(), table, 3)[2] = outside
		p := packet(device.OpCollect, 1<<16, table, 3, 256, 128, 384)
		_, err := d.Run(t.Context(), []device.Packet{p})
		if refused := (*device.PacketError)(nil); !errors.As(err, &refused) || refused.Status != device.StatusRange || p.Check(d.Memory()) != device.StatusRange {
			t.Errorf("a piece at %#x: %v", outside+128, err)
		}
	}
}

func TestProductsOfBytesEqualTheirDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(13, 1))
	for _, bits := range []uint32{8, 4} {
		for round, group := range []uint32{32, 64, 128} {
			t.Run(fmt.Sprintf("W%d group %d", bits, group), func(t *testing.T) {
				m, k := []uint32{256, 128, 128}[round], []uint32{256, 768, 1024}[round]
				a := &arena{d.Memory(), device.Align}
				n := []uint32{3, 1, 2}[round]
				x := extreme(r, int(n*k))
				if round > 0 {
					x = random16(r, int(n*k), device.MaxActivation)
				}
				at := a.int16s(x)
				split, y := a.alloc(int(n)*device.TableStride(int(k), true), 128), a.alloc(4*int(m*n), 128)
				values := a.bytes(randomBytes(r, 16), 128)
				behind := &arena{d.Memory(), device.TCMBytes}
				codes := behind.bytes(randomBytes(r, int(m*k/8*bits)), 128)
				sc, of := behind.int16s(scales(r, int(m*k/group), round == 1)), behind.int16s(scales(r, int(m*k/group), round == 2))
				both(t, d, packet(device.OpPrecompute, split, n, at, k, 1))
				one, b := uint32(1), uint32(layout.ByteZero)
				if bits == 4 {
					one, b = 0, values
				}
				for _, offsets := range []uint32{0, of} {
					both(t, d, multiplication(y, codes, split, n, sc, offsets, m, k, bits, group, one, b))
				}
			})
		}
	}
}

func TestDequantOfBytesEqualsItsDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(14, 1))
	const m, k = 256, 512
	for _, bits := range []uint32{8, 4} {
		for round, group := range []uint32{32, 64, 128} {
			t.Run(fmt.Sprintf("W%d group %d", bits, group), func(t *testing.T) {
				a := &arena{d.Memory(), device.Align}
				codes := a.bytes(randomBytes(r, int(m*k/8*bits)), 128)
				sc, of := a.int16s(scales(r, int(m*k/group), round == 1)), a.int16s(scales(r, int(m*k/group), round == 2))
				values, tiles := a.uint16s(randomHalves(r, 16)), a.alloc(8*8*2048, 128)
				for _, offsets := range []uint32{0, of} {
					for _, span := range [][3]uint32{{0, 0, 8}, {1, 3, 2}, {1, 7, 1}} {
						both(t, d, packet(device.OpDequant, tiles, codes, sc, offsets, values, span[0], span[1], span[2], k, bits, group, 1))
					}
				}
			})
		}
	}
}
