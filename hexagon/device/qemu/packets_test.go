package qemu

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	drawn "github.com/lutra-lm/lutra/hexagon/device/exercise"
)

// work bounds what a packet costs the emulator, in about a vector's instruction.
func work(p device.Packet) float64 {
	n := func(i int) float64 { return float64(p.Args[i]) }
	switch p.Op {
	case device.OpGEMV:
		strips, _ := p.GEMVTiles()
		return n(3)*n(6)*n(7)*n(8)/256 + float64(strips)*n(14)
	case device.OpPrecompute:
		return n(1) * n(3) * 2
	case device.OpDequant:
		return (1 + n(12)) * n(7) * 4096
	case device.OpTileMul:
		return n(7) * n(8) * (n(3) + n(6)) * 1e4
	case device.OpByteTiles:
		return n(2) * 1024
	case device.OpTileMulBytes:
		return n(4) * n(5) * n(3) * 2e4
	case device.OpSoftmax:
		return n(4) * (n(5) + 1) * 4000
	case device.OpExpTable:
		return 0
	case device.OpRMSNorm, device.OpToTiles:
		return 20 * n(3) * n(4) * n(5)
	case device.OpQuantize, device.OpGLU, device.OpFromTiles:
		return 20 * n(3) * n(4)
	case device.OpRowsToTiles:
		return 20 * (n(3) + 32) * n(4)
	case device.OpScale, device.OpTilesToRows:
		return 20 * n(5) * n(6)
	case device.OpLayerNorm:
		return 20 * n(4) * n(5)
	case device.OpSoftCap:
		return n(2) * 1000
	case device.OpMul:
		return 20 * n(3) * n(4)
	case device.OpConv:
		return 20 * n(4) * n(5) * (n(8) + 10*n(9))
	case device.OpGates:
		return 200 * n(3) * n(4)
	case device.OpDelta:
		return 20 * n(5) * n(6) * n(7) * n(8) * n(8)
	case device.OpAdd:
		return 20 * n(2) * n(3)
	case device.OpRope:
		return 20 * n(2) * n(3) * n(4)
	}
	return n(2) * 100
}

// checkPacket runs a packet and checks its status, and that nothing but its outputs
// has changed. Whatever else is in memory stays the fill.
func checkPacket(t *testing.T, d *Device, fill []byte, p device.Packet) {
	status := p.Check(d.Memory())
	if status == device.StatusOK && work(p) > 3e5 {
		return
	}
	_, err := d.Run(t.Context(), []device.Packet{p})
	if status != device.StatusOK {
		var refused *device.PacketError
		if !errors.As(err, &refused) || refused.Status != status || refused.Index != 0 || refused.Op != p.Op {
			t.Fatalf("%v: %v, but Check says %d", p, err, status)
		}
	} else if err != nil {
		t.Fatalf("%v: %v", p, err)
	} else {
		for _, o := range drawn.Written(p) {
			copy(d.Memory()[o[0]:][:o[1]], fill[o[0]:])
		}
	}
	if !bytes.Equal(d.Memory(), fill) {
		copy(d.Memory(), fill)
		t.Fatalf("%v: memory beside its outputs has changed", p)
	}
}

// plausible are numbers that packets have, and their neighbours.
var plausible = []uint32{0, 1, 2, 3, 4, 7, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 144, 255, 256, 257, 512, 1024, 2048, 4096, 4097,
	1 << 16, 1<<16 + 128, 1 << 17, 1<<17 + 128, 1<<17 + 256, device.TCMBytes - 2048, device.TCMBytes - 128, device.TCMBytes, device.TCMBytes + 128,
	device.TCMBytes + 1<<20 - 256, device.TCMBytes + 1<<20, 1 << 31, 1<<32 - 256, 1<<32 - 128, 1<<32 - 1}

func randomPacket(r *rand.Rand) device.Packet {
	p := device.Packet{Op: device.Op(r.IntN(31))}
	for i := range p.Args {
		switch r.IntN(4) {
		case 0:
			p.Args[i] = uint32(r.IntN(device.TCMBytes/128)) * 128
		case 1:
			p.Args[i] = r.Uint32()
		default:
			p.Args[i] = plausible[r.IntN(len(plausible))]
		}
	}
	return p
}

const ddr = device.TCMBytes

// valid are packets that Check takes, for mutations to begin with.
var valid = []device.Packet{
	packet(device.OpPing),
	packet(device.OpCopy, 128, 4096, 256),
	packet(device.OpPrecompute, 1<<16, 1, 256, 768),
	packet(device.OpGEMV, 128, ddr, 1<<16, 3, ddr+1<<17, ddr+1<<18, 256, 512, 2, 64, 1, 1, 1<<20, 1, 256),
	packet(device.OpGEMV, 128, ddr, 1<<16, 1, 0, 0, 256, 256, 4, 256, 2, 15, 1<<22, device.GEMVTiles(1, 3), 512),
	packet(device.OpPrecompute, 1<<16, 3, 256, 768, 1),
	packet(device.OpGEMV, 128, ddr, 1<<16, 2, ddr+1<<18, 0, 256, 512, 8, 32, 1, 128, 1<<20, device.GEMVTiles(2, 2), 256),
	packet(device.OpGEMV, 128, ddr, 1<<16, 1, ddr+1<<18, ddr+1<<19, 128, 512, 4, 64, 0, 256, 1<<20, 2, 256),
	packet(device.OpDequant, 1<<20, 1<<16, 1<<22, 1<<21, 128, 1, 2, 3, 512, 8, 32),
	packet(device.OpDequant, 1<<20, 1<<16, 1<<22, 1<<21, 128, 1, 2, 3, 512, 4, 32, 1),
	packet(device.OpDequant, 1<<20, 1<<16, 1<<22, 1<<21, 128, 1, 2, 3, 512, 4, 32),
	packet(device.OpDequant, 1<<20, 1<<16, 1<<22, 1<<21, 128, 1, 2, 3, 512, 4, 32, 0, 2),
	packet(device.OpVLUT16, 1<<20, 144, 5, 128),
	packet(device.OpTileMul, 0, 1<<16, 1<<17, 1, 1<<18, 1<<19, 1, 1, 1, 0x3800, 1<<20),
	packet(device.OpByteTiles, 1<<16, 1<<18, 3, 2),
	packet(device.OpTileMulBytes, 0, 1<<16, 1<<17, 2, 1, 2, 1<<20),
	packet(device.OpExpTable, 1<<16),
	packet(device.OpSoftmax, 1<<20, 1<<16, 1<<21, 1<<22, 1, 3),
	packet(device.OpCollect, 1<<20, ddr, 2, 256, 128, 512),
	packet(device.OpRMSNorm, 1<<20, ddr, ddr+1<<16, 2, 3, 64, 1024, 768, 0x3c800000, 0x3727c5ac),
	packet(device.OpQuantize, 1<<20, 1<<19, ddr, 2, 512, 288, 1280),
	packet(device.OpScale, 1<<20, ddr, 1<<16, 1<<17, 1<<18, 2, 128, 512, 640),
	packet(device.OpAdd, 1<<20, ddr, 3, 96, 384, 512, 0x3f800000),
	packet(device.OpRope, 1<<20, ddr, 2, 3, 128, 64, 32, 2048),
	packet(device.OpRope, 1<<20, ddr, 2, 3, 32, 32, 1, 384),
	packet(device.OpGLU, 1<<20, ddr, ddr+1024, 2, 96, 384, 2048, 1),
	packet(device.OpGLU, 1<<20, ddr, ddr+1024, 2, 96, 384, 2048, 3, 0x40e00000, 0x3fd9db23, 0x3f800000),
	packet(device.OpGLU, 1<<20, ddr, ddr, 2, 96, 384, 2048, 6),
	packet(device.OpToTiles, 1<<20, ddr, 3, 2, 64, 512, 4096, 29, 1, 0x3f800000),
	packet(device.OpFromTiles, 1<<20, ddr, 1<<16, 3, 64, 256, 7, 1<<17, 1),
	packet(device.OpFold, 1<<20, 1<<19, ddr, 1),
	packet(device.OpSoftCap, 1<<20, 1<<16, 3),
	packet(device.OpLayerNorm, 1<<20, ddr, ddr+1<<16, ddr+1<<17, 2, 96, 384, 512, 0x3c800000, 0x3727c5ac),
	packet(device.OpRowsToTiles, 1<<20, 1<<19, ddr, 33, 128, 96, 384),
	packet(device.OpTilesToRows, 1<<20, ddr, 1<<16, 1<<17, 1<<18, 34, 64, 256, 0x3f000000, 1),
	packet(device.OpMul, 1<<20, ddr, ddr+1024, 2, 96, 384, 2048, 1024),
	packet(device.OpConv, 1<<20, ddr, ddr+1<<16, ddr+1<<17, 3, 96, 384, 512, 4),
	packet(device.OpConv, 1<<20, ddr, ddr+1<<16, ddr+1<<17, 1, 32, 384, 512, 2, 1),
	packet(device.OpGates, 1<<20, ddr, ddr+1<<16, 2, 64, 384, 512),
	packet(device.OpDelta, 1<<20, ddr, ddr+1<<16, ddr+1<<17, ddr+1<<18, 2, 1, 2, 32, 384, 512, 256, 33, 7, 1),
	packet(device.OpDelta, 1<<20, ddr, ddr+1<<16, 0, 1<<19, 1, 2, 1, 32, 256, 768, 128, 0, 2),
}

func mutated(r *rand.Rand) device.Packet {
	p := valid[r.IntN(len(valid))]
	for range r.IntN(3) {
		i := r.IntN(len(p.Args))
		switch r.IntN(4) {
		case 0:
			p.Args[i] ^= 1 << r.IntN(32)
		case 1:
			p.Args[i] += plausible[r.IntN(len(plausible))]
		case 2: // operands that meet
			p.Args[i] = p.Args[r.IntN(len(p.Args))] + uint32(r.IntN(3))*128
		default:
			p.Args[i] = plausible[r.IntN(len(plausible))]
		}
	}
	return p
}

func filled(d *Device) []byte {
	fill := randomBytes(rand.New(rand.NewPCG(6, 1)), len(d.Memory()))
	copy(d.Memory(), fill)
	return fill
}

const packetMemory = device.TCMBytes + 1<<20

func TestTheDeviceRefusesWhatCheckRefusesAndWritesNothingElse(t *testing.T) {
	d := open(t, Options{Memory: packetMemory, KeepTCM: true})
	fill := filled(d)
	r := rand.New(rand.NewPCG(7, 1))
	n := 250
	if testing.Short() {
		n = 100
	}
	for range n {
		checkPacket(t, d, fill, randomPacket(r))
		checkPacket(t, d, fill, mutated(r))
	}
}

// A product whose first tiles might come ahead is checked before, and refused in its turn.
func TestWhatBringsTilesAheadIsChecked(t *testing.T) {
	d := open(t, Options{Memory: packetMemory, KeepTCM: true})
	filled(d)
	r := rand.New(rand.NewPCG(8, 1))
	for range 100 {
		next := valid[3+r.IntN(2)]
		next.Args[r.IntN(len(next.Args))] = r.Uint32() >> r.IntN(32)
		status := next.Check(d.Memory())
		if status == device.StatusOK && work(next) > 3e5 {
			continue
		}
		_, err := d.Run(t.Context(), []device.Packet{valid[3], next})
		var refused *device.PacketError
		if status == device.StatusOK && err != nil || status != device.StatusOK && (!errors.As(err, &refused) || refused.Status != status || refused.Index != 1) {
			t.Fatalf("%v: %v, but Check says %d", next, err, status)
		}
	}
}

func FuzzPackets(f *testing.F) {
	d := open(f, Options{Memory: packetMemory, KeepTCM: true})
	fill := filled(d)
	for _, p := range valid {
		f.Add(encode(p))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkPacket(t, d, fill, decode(b)) })
}

func TestARunStopsAtTheFirstPacketThatIsRefused(t *testing.T) {
	d := open(t, Options{Memory: packetMemory, KeepTCM: true})
	copyTo := func(at uint32) device.Packet { return packet(device.OpCopy, at, 1<<20, 128) }
	d.Memory()[1<<20] = 7
	mul := packet(device.OpTileMul, 0, 1<<16, 1<<17, 1, 0, 0, 0, 1, 1, 0x7c00, 1<<20) // an infinite scale
	for bad, index := range map[device.Packet]int{{Op: 99}: 2, mul: 2, copyTo(1): 2} {
		clear(d.Memory()[:1<<20])
		_, err := d.Run(t.Context(), []device.Packet{copyTo(128), copyTo(256), bad, copyTo(512)})
		var refused *device.PacketError
		if !errors.As(err, &refused) || refused.Index != index || refused.Op != bad.Op {
			t.Errorf("%v: %v", bad, err)
		}
		if m := d.Memory(); m[128] != 7 || m[256] != 7 || m[512] != 0 {
			t.Errorf("%v: packets before it have not run, or those behind it have", bad)
		}
	}
	if _, err := d.Run(t.Context(), nil); err != nil {
		t.Error("an empty run:", err)
	}
}

func TestLongRunsAndLargeMemory(t *testing.T) {
	d := open(t, Options{Memory: MaxMemory, KeepTCM: true})
	last := uint32(MaxMemory - 128)
	d.Memory()[last] = 9
	packets := make([]device.Packet, 2000)
	for i := range packets {
		packets[i] = packet(device.OpCopy, uint32(i)*128, last, 128)
	}
	counts, err := d.Run(t.Context(), packets)
	if err != nil {
		t.Fatal(err)
	}
	if counts.Packets == 0 || counts.Instructions < counts.Packets || counts.Transfers != 2000 || counts.Moved != 2000*128 {
		t.Errorf("counted %+v", counts)
	}
	for i := range packets {
		if d.Memory()[i*128] != 9 {
			t.Fatalf("packet %d has not run", i)
		}
	}
}
