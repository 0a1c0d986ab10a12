package qemu

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	drawn "github.com/lutra-lm/lutra/hexagon/device/exercise"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

const (
	strict = "build/lutra-emulator-strict.elf"
	staged = drawn.Memory // where copies of operands lie, behind a generator's
	freed  = 6 << 20      // what a generator leaves of TCM
)

// hazards are packets that leave something under way on an operand: DMA and a product that bring it, and where it is
// written, that still read it.
func hazards(o device.Operand) (of []device.Packet) {
	from, end := o.Offset&^(device.Align-1), (uint64(o.Offset)+o.Size()+device.Align-1)&^(device.Align-1)
	n := uint32(end) - from
	tile := (from + layout.TileBytes - 1) &^ (layout.TileBytes - 1)
	tiles := o.Offset < device.TCMBytes && uint64(tile)+layout.TileBytes <= end && tile < freed
	of = append(of, packet(device.OpCopy, from, staged, n))
	product := packet(device.OpTileMul, freed, freed+1<<14, freed+1<<15, 1, 0, 0, 0, 1, 1, 0x3c00, freed+1<<16)
	if tiles {
		p := product
		p.Args[0] = tile
		of = append(of, p)
	}
	if o.Rule&device.Writes != 0 {
		of = append(of, packet(device.OpCopy, staged, from, n))
		if tiles {
			p := product
			p.Args[1] = tile
			of = append(of, p)
		}
	}
	return of
}

// inOrder says whether a packet behind another one needs no wait for it: both are transfers of one engine.
func inOrder(o device.Operand, q, p device.Packet) bool {
	return o.Rule&device.InOrder != 0 && q.Op == device.OpCopy && (p.Op == device.OpCopy || p.Op == device.OpCollect)
}

// Each operand of each operation has DMA, or a product, under way on it. The results are right, and without the wait for
// that one operand the machine faults, or they are wrong. What is in order has no wait. Two workers have all that can be cut
// computed by engines that know nothing of one another.
func TestEveryOperandIsWaitedFor(t *testing.T) {
	text, err := os.ReadFile(made(t, strict))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../../../docs/data/npu-operands.csv")
	if err != nil {
		t.Fatal(err)
	}
	missed := map[string]bool{} // operands without whose wait something was seen
	start := func() *Device {
		d, err := Open(Options{Program: text, KeepTCM: true, Workers: 2, Memory: staged + 4<<20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	local := cpu.Aligned[uint8](staged + 4<<20)
	right, blind := start(), start()
	for i := range local[freed:device.TCMBytes] { // no generator writes here, nor there
		local[freed+i] = 0x2c
	}
	source := local[staged:]
	for i := range source {
		source[i] = byte(0x2c + i*7>>3&15)
	}
	unused := bytes.Clone(source)
	// runs has a device run a packet behind another, and says whether memory is then as defined.
	// What a copy brings lies elsewhere before.
	runs := func(d *Device, q, p device.Packet) bool {
		if q.Op == device.OpCopy && q.Args[1] == staged {
			there := local[q.Args[0]:][:q.Args[2]]
			copy(source, there)
			for i := range there {
				there[i] ^= 0x5a
			}
			defer func() { copy(there, source); copy(source, unused[:len(there)]) }()
		}
		copy(d.Memory(), local)
		want := bytes.Clone(local)
		device.Define(want, q)
		device.Define(want, p)
		if _, err := d.Run(t.Context(), []device.Packet{q, p}); err != nil {
			return false
		}
		clear(d.Memory()[freed:][:layout.TileBytes]) // a product of what are no numbers
		clear(want[freed:][:layout.TileBytes])
		for _, p := range []device.Packet{q, p} {
			for _, s := range drawn.Scratch(p) {
				clear(d.Memory()[s[0]:][:s[1]])
				clear(want[s[0]:][:s[1]])
			}
		}
		return bytes.Equal(d.Memory(), want)
	}
	for _, op := range device.Ops() {
		g := drawn.New(uint64(op), local)
		for range 40 { // codes in bytes of 4 bits are rare
			p := g.Of(op)
			if op == device.OpScale { // a generator's has no bias
				_, end := g.Ends()
				copy(local[end:], local[p.Args[3]:][:4*p.Args[6]])
				p.Args[4] = end
			}
			if op == device.OpFromTiles { // numbers that are said to be too large
				for i := range device.View[uint16](local, p.Args[1], 1024) {
					device.View[uint16](local, p.Args[1], 1024)[i] = 0x7bff
				}
			}
			operands, status := p.Operands(len(local))
			if status != device.StatusOK {
				t.Fatalf("%v is refused", p)
			}
			for _, o := range operands {
				if o.Name == "" { // one of the pieces
					o.Offset, o.Bytes = device.View[uint32](local, p.Args[1], 1)[0]+p.Args[4], uint64(p.Args[3])
				}
				for i, q := range hazards(o) {
					key := fmt.Sprintf("%v, operand %d, %d", op, o.Number, i)
					if _, again := missed[key]; !again {
						if missed[key] = false; !runs(right, q, p) {
							t.Errorf("%v: %q with %v under way: results differ", op, o.Name, q)
							right = start()
						}
					}
					if inOrder(o, q, p) {
						missed[key] = true
					}
					if missed[key] {
						continue
					}
					blind.blind = uint32(op)<<4 | uint32(o.Number)
					if missed[key] = !runs(blind, q, p); missed[key] {
						blind.Close()
						blind = start()
					}
				}
			}
		}
	}
	seen := map[string]bool{}
	for key, noticed := range missed {
		if !noticed {
			t.Errorf("%s: nothing is seen without its wait", key)
		}
		seen[key[:strings.LastIndex(key, " ")]] = true
	}
	if all := bytes.Count(table, []byte("\n")) - bytes.Count(table, []byte("# ")) - 1; len(seen) != all {
		t.Errorf("%d operands had something under way, of %d in the table", len(seen), all)
	}
}

// Gathers' numbers are nonsense until they are waited for, which costs packets that the program that counts has not.
func TestGathersAreWaitedFor(t *testing.T) {
	text, err := os.ReadFile(made(t, strict))
	if err != nil {
		t.Fatal(err)
	}
	if err := newExercise().run(t, open(t, Options{Program: text, KeepTCM: true, Workers: 3}), device.OpExpTable, device.OpSoftmax, device.OpSoftCap); err != nil {
		t.Error(err)
	}
}
