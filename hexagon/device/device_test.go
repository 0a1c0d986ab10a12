package device

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

func TestBoundsAreThoseOfTheLayout(t *testing.T) {
	if MaxDim != layout.MaxDim || MaxTiles != TCMBytes/layout.TileBytes {
		t.Error("device and layout have bounds of their own")
	}
}

func TestPacketsBeyondTheirBoundsAreRefused(t *testing.T) {
	const memory = TCMBytes + 1<<20
	const ddr = TCMBytes
	const one = 0x3c00
	all := make([]byte, memory)
	collect := Packet{OpCollect, [15]uint32{0, ddr + 65536, 3, 256, 128, 512}}
	copy(View[uint32](all, ddr+65536, 6), []uint32{ddr, memory - 384, ddr + 256, ddr - 256, ddr + 1, math.MaxUint32 - 127})
	gemv := Packet{OpGEMV, [15]uint32{ddr, ddr + 4096, 65536, 1, 0, 0, 128, 256, 2, 256, 1, 1, 1 << 20, 1, 256}}
	grouped := Packet{OpGEMV, [15]uint32{ddr, ddr + 4096, 65536, 1, ddr + 65536, 0, 128, 256, 2, 64, 1, 1, TCMBytes - 4*Page, 1, 256}}
	dequant := Packet{OpDequant, [15]uint32{0, ddr, 65536, 0, ddr + 256<<10, 0, 1, 3, 256, 4, 64}}
	mul := Packet{OpTileMul, [15]uint32{0, 65536, 131072, 2, 0, 0, 0, 3, 4, one, 1 << 20}}
	softmax := Packet{OpSoftmax, [15]uint32{1 << 20, 65536, ddr, 0, 2, 2}}
	copies := Packet{OpCopy, [15]uint32{0, ddr, 1 << 20}}
	precompute := Packet{OpPrecompute, [15]uint32{ddr, 2, ddr + 128<<10, 512}}
	vlut := Packet{OpVLUT16, [15]uint32{0, ddr + 16, 4, ddr + 65536}}
	bytes := Packet{OpGEMV, [15]uint32{ddr, ddr + 4096, 65536, 1, ddr + 65536, 0, 128, 256, 8, 64, 1, 128, TCMBytes - 5*Page, 1, 256}}
	change := func(p Packet, i int, v uint32) Packet {
		p.Args[i] = v
		return p
	}
	for _, c := range []struct {
		p    Packet
		want Status
	}{
		{Packet{Op: OpPing}, StatusOK}, {Packet{}, StatusOp}, {Packet{Op: numOps}, StatusOp}, {Packet{Op: 1 << 31}, StatusOp},
		{gemv, StatusOK}, {grouped, StatusOK}, {dequant, StatusOK}, {mul, StatusOK}, {softmax, StatusOK}, {copies, StatusOK}, {precompute, StatusOK}, {vlut, StatusOK},
		{Packet{OpCopy, [15]uint32{TCMBytes - Align, ddr + 4096, 2 * Align}}, StatusRange}, // half in TCM
		{change(copies, 2, 0), StatusSize}, {change(copies, 2, 100), StatusSize}, {change(copies, 0, 1), StatusRange}, {change(copies, 1, ddr+128), StatusRange},
		{Packet{OpCopy, [15]uint32{ddr, ddr + 128, 128}}, StatusOK}, {Packet{OpCopy, [15]uint32{ddr, ddr + 128, 256}}, StatusRange}, {Packet{OpCopy, [15]uint32{ddr + 128, ddr, 256}}, StatusRange}, {Packet{OpCopy, [15]uint32{ddr, ddr, 128}}, StatusRange},
		{change(gemv, 0, 1<<20), StatusRange}, {change(gemv, 0, 1<<20-384), StatusRange}, {change(gemv, 0, 1<<20-512), StatusOK}, {change(gemv, 2, 1<<20), StatusRange},
		{change(mul, 1, 0), StatusRange}, {change(mul, 2, 2048), StatusRange}, {change(mul, 10, 2048), StatusRange}, {change(collect, 0, ddr+65536), StatusRange},
		{change(precompute, 3, 128), StatusSize}, {change(precompute, 1, 0), StatusSize}, {change(precompute, 1, MaxRows+1), StatusSize}, {change(precompute, 1, MaxRows), StatusRange},
		{change(gemv, 3, 0), StatusSize}, {change(gemv, 3, 16), StatusOK}, {change(gemv, 3, MaxRows+1), StatusSize}, {change(change(gemv, 3, MaxRows), 2, 6<<20), StatusRange},
		{change(grouped, 3, 2), StatusOK}, {change(grouped, 3, 129), StatusRange}, {change(precompute, 3, MaxDim+256), StatusSize}, {change(precompute, 2, memory-512), StatusRange},
		{change(gemv, 8, 3), StatusNumber}, {change(gemv, 9, 16), StatusNumber}, {change(gemv, 9, 512), StatusNumber}, {change(gemv, 10, 0), StatusNumber},
		{change(gemv, 11, 256), StatusNumber}, {change(gemv, 6, 64), StatusSize}, {change(gemv, 7, 0), StatusNumber}, {change(grouped, 7, 0), StatusSize},
		{change(gemv, 0, memory), StatusRange}, {change(gemv, 6, MaxDim), StatusRange}, {change(gemv, 6, MaxDim+128), StatusSize},
		{change(grouped, 4, memory-128), StatusRange}, {change(grouped, 5, memory-128), StatusRange}, {change(gemv, 4, 1), StatusOK},
		{change(gemv, 1, 0), StatusRange}, {change(grouped, 4, 0), StatusRange}, {change(grouped, 5, 128), StatusRange}, {change(gemv, 2, ddr+65536), StatusRange},
		{change(gemv, 12, ddr), StatusRange}, {change(gemv, 12, 128), StatusRange}, {change(grouped, 13, 4), StatusOK}, {change(grouped, 13, 8), StatusRange},
		{change(gemv, 13, 0), StatusSize}, {change(gemv, 13, MaxStrips+1), StatusSize}, {change(gemv, 14, 128), StatusSize}, {change(gemv, 14, 0), StatusSize},
		{change(gemv, 14, MaxDim/4), StatusOK}, {change(change(gemv, 14, MaxDim), 13, MaxStrips), StatusRange},
		{change(dequant, 7, 4), StatusSize}, {change(dequant, 7, 0), StatusSize}, {change(dequant, 6, math.MaxUint32), StatusSize}, {change(dequant, 5, 1024), StatusSize},
		{change(dequant, 5, 1023), StatusRange}, {change(dequant, 4, 8), StatusRange}, {change(dequant, 9, 0), StatusNumber},
		{change(vlut, 1, ddr+8), StatusRange}, {change(vlut, 2, 0), StatusSize}, {change(vlut, 2, math.MaxUint32), StatusRange},
		{change(mul, 0, ddr), StatusRange}, {change(mul, 9, 0x7c00), StatusNumber}, {change(mul, 9, 1<<16), StatusNumber}, {change(mul, 1, 65536+128), StatusRange}, {change(mul, 10, 128), StatusRange}, {change(mul, 10, ddr), StatusRange}, {change(mul, 7, MaxTiles+1), StatusSize}, {change(mul, 3, 0), StatusSize},
		{change(mul, 6, MaxTiles), StatusRange}, {change(change(mul, 7, MaxTiles), 8, MaxTiles), StatusRange}, {change(mul, 4, 1), StatusOK},
		{Packet{OpExpTable, [15]uint32{65536}}, StatusOK}, {Packet{OpExpTable, [15]uint32{128}}, StatusRange}, {Packet{OpExpTable, [15]uint32{ddr}}, StatusRange},
		{change(softmax, 1, 128), StatusRange}, {change(softmax, 0, ddr), StatusRange}, {change(softmax, 3, ddr), StatusRange}, {change(softmax, 2, memory-128), StatusRange},
		{change(softmax, 5, 0), StatusSize},
		{collect, StatusOK}, {change(collect, 2, 0), StatusSize}, {change(collect, 3, 100), StatusSize}, {change(collect, 5, 128), StatusSize}, {change(collect, 3, 0), StatusSize},
		{change(collect, 5, 512+64), StatusSize}, {change(collect, 1, 0), StatusRange}, {change(collect, 0, TCMBytes-512), StatusRange}, {change(collect, 4, 256), StatusRange},
		{bytes, StatusOK}, {change(bytes, 9, 256), StatusNumber}, {change(bytes, 10, 0), StatusNumber}, {change(bytes, 11, 8), StatusNumber}, {change(bytes, 2, TCMBytes-256), StatusRange},
		{change(change(change(bytes, 8, 4), 10, 0), 11, 0), StatusOK}, {change(change(change(bytes, 8, 4), 10, 0), 11, 8), StatusRange},
		{change(dequant, 11, 1), StatusOK}, {change(dequant, 11, 2), StatusNumber}, {change(change(dequant, 9, 2), 11, 1), StatusNumber}, {change(change(dequant, 9, 8), 4, 1), StatusOK},
		{change(change(dequant, 9, 8), 10, 256), StatusNumber}, {change(precompute, 4, 1), StatusOK}, {change(precompute, 4, 2), StatusNumber},
		{change(collect, 2, 4), StatusRange}, {change(collect, 1, ddr+65536+128), StatusRange}, {change(collect, 1, ddr+65536+4), StatusRange}, {change(collect, 2, MaxTiles+1), StatusSize},
	} {
		if got := c.p.Check(all); got != c.want {
			t.Errorf("%v is answered %d, want %d", c.p, got, c.want)
		}
	}
	if got := copies.Check(all[:4096]); got != StatusRange {
		t.Errorf("a copy beyond a small memory is answered %d", got)
	}
}

func TestTheGoDeviceStopsAtAPacketThatItRefuses(t *testing.T) {
	d, err := NewGo(nil, TCMBytes+4096)
	if err != nil {
		t.Fatal(err)
	}
	copy(d.Memory()[TCMBytes:], "otter")
	_, err = d.Run(t.Context(), []Packet{{OpCopy, [15]uint32{0, TCMBytes, 128}}, {OpCopy, [15]uint32{0, TCMBytes, 1}}, {OpCopy, [15]uint32{0, TCMBytes + 128, 128}}})
	var refused *PacketError
	if !errors.As(err, &refused) || refused.Index != 1 || refused.Status != StatusSize {
		t.Fatalf("the run ends with %v", err)
	}
	if string(d.Memory()[:5]) != "otter" {
		t.Error("the packet before it was not computed, or one after it was")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Run(ctx, []Packet{{Op: OpPing}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end the run ends with %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), []Packet{{Op: OpPing}}); err == nil {
		t.Error("a closed device runs")
	}
	for _, n := range []int{0, TCMBytes, -1} {
		if _, err := NewGo(nil, n); err == nil {
			t.Errorf("a device with %d bytes is made", n)
		}
	}
}
