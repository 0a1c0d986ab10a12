package qemu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// floats are n float32, of any exponent but infinities' in every other round.
func (a *arena) floats(r *rand.Rand, n int, wild bool) uint32 {
	at := a.alloc(4*n, device.Align)
	for i := range n {
		f := float32(r.NormFloat64() * 4)
		if wild {
			for f = math.Float32frombits(r.Uint32()); f-f != 0; f = math.Float32frombits(r.Uint32()) {
			}
		}
		if r.IntN(16) == 0 {
			f = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-42, -1e-42}[r.IntN(6)]
		}
		device.View[float32](a.memory, at, n)[i] = f
	}
	return at
}

// Additions and multiplications of any two numbers, as OpAdd makes them: sums that cancel,
// ties, subnormal and infinite results.
func TestFloatsAreIEEEs(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(31, 1))
	for round := range 16 {
		const n, width = 8, 512
		a := &arena{d.Memory(), device.TCMBytes}
		x, y := a.floats(r, n*width, true), a.floats(r, n*width, true)
		b, c := device.View[uint32](d.Memory(), x, n*width), device.View[uint32](d.Memory(), y, n*width)
		factor := math.Float32bits(1)
		for i := range b {
			if round%2 == 0 { // near in magnitude
				c[i] = c[i]&0x807fffff | b[i]&0x7f800000 + uint32(r.IntN(60)-30)<<23
				if c[i]>>23&255 == 255 {
					c[i] -= 1 << 23
				}
			}
			if r.IntN(8) == 0 {
				c[i] &= 0xfffff000
			}
		}
		if round%4 > 1 {
			factor = math.Float32bits(float32(math.Ldexp(r.NormFloat64(), r.IntN(60)-30)))
		}
		if round%8 == 7 { // products alone, tiny ones too
			clear(b)
			factor = math.Float32bits(float32(math.Ldexp(r.NormFloat64(), -r.IntN(126))))
		}
		for i, v := range c {
			// Sums of an infinite product have no meaning.
			if p := math.Float32frombits(v) * math.Float32frombits(factor); p-p != 0 {
				c[i] = 0
			}
		}
		both(t, d, packet(device.OpAdd, x, y, n, width, 4*width, 4*width, factor))
	}
}

// rowOperations are packets of every operation on rows, whose operands no other writes unless
// it follows it: n rows of parts of width numbers.
func rowOperations(r *rand.Rand, a *arena, n, parts, width uint32, round int) (packets []device.Packet) {
	bits, row := math.Float32bits, parts*width
	stride := 4*row + 128*uint32(round)
	rows := func() uint32 { return a.floats(r, int(n*stride/4), false) }
	add := func(op device.Op, args ...uint32) { packets = append(packets, packet(op, args...)) }
	x, y, weights := rows(), rows(), a.floats(r, int(row), false)
	add(device.OpRMSNorm, y, x, weights, n, parts, width, stride, stride, bits(1/float32(width)), bits(1e-5))
	add(device.OpRMSNorm, x, x, 0, n, parts, width, stride, stride, bits(1/float32(width)), 0)
	x = rows()
	add(device.OpLayerNorm, y, x, weights, a.floats(r, int(row), false), n, row, stride, stride, bits(1/float32(row)), bits(1e-5))
	add(device.OpLayerNorm, x, x, weights, weights, n, row, stride, stride, bits(1/float32(row)), 0)
	ints, scales := a.alloc(2*512*int(n), 128), a.alloc(128, 128)
	x = rows()
	clear(device.View[float32](a.memory, x, int(row))) // a row of zeros
	add(device.OpQuantize, ints, scales, x, n, 512, row, stride)
	add(device.OpQuantize, a.alloc(2*512*int(n), 128), scales, y, n, 512, row, stride)
	sums := a.bytes(randomBytes(r, int(n*stride)), 128)
	device.View[uint32](a.memory, sums, 1)[0] = 1 << 31
	add(device.OpScale, y, sums, scales, weights, 0, n, row, stride, stride)
	add(device.OpScale, x, sums, scales, weights, weights, n, row, stride, stride)
	for _, unit := range []uint32{ref.GLUSiLU, ref.GLUGELU, ref.GLUReLU2, ref.GLUSigmoid, ref.GLUErfGELU, ref.GLUErfAlone} {
		x = rows()
		add(device.OpGLU, x, rows(), x, n, row, stride, stride, unit)
	}
	for _, c := range [][3]float32{{7, 1.702, 1}, {2, 1, 0}, {0, -0.5, -3}} {
		x = rows()
		add(device.OpGLU, x, rows(), x, n, row, stride, stride, ref.GLUClamped, bits(c[0]), bits(c[1]), bits(c[2]))
	}
	add(device.OpAdd, x, rows(), n, row, stride, stride, bits(0.18))
	add(device.OpMul, y, rows(), y, n, row, stride, stride, stride)
	for _, taps := range []uint32{2, 3, 8} { // a state in turn shorter and longer than the rows
		state := a.floats(r, int(taps*row), false)
		for silu := range uint32(2) { // the second goes on where the first ends
			add(device.OpConv, rows(), rows(), a.floats(r, int(taps*row), false), state, n, row, stride, stride, taps, silu)
		}
	}
	add(device.OpGates, rows(), rows(), a.floats(r, int(3*row), false), n, row, stride, stride)
	share, wide := uint32(2), uint32(32) // of a head: one panel, or two
	if width == 64 {
		wide = width
	}
	heads := parts * share
	for grouped := range uint32(2) {
		gates, state, next := a.floats(r, int(n*64), false), a.floats(r, int(heads*wide*wide), false), a.alloc(int(4*heads*wide*wide), 128)
		into := 4*heads*wide + 128*uint32(round)
		of := 8*parts*wide + into
		delta := func(from, to uint32) {
			add(device.OpDelta, a.alloc(int(n*into), 128), a.floats(r, int(n*of/4), false), gates, from, to, n, parts, share, wide, into, of, 256, 3, 17, grouped)
		}
		delta(0, next) // which the next one goes on from, to where the last goes on in place
		delta(next, state)
		delta(state, state)
	}
	angles := a.floats(r, int(2*n*width), false)
	for _, of := range [][2]uint32{{32, 1}, {32, 16}, {64, 32}, {width, 2}, {192, 96}} {
		if of[0] <= width {
			add(device.OpRope, rows(), angles, n, parts, width, of[0], of[1], stride)
		}
	}
	first := func() uint32 { return uint32(r.IntN(33 - int(n))) }
	tiles, step := a.uint16s(randomHalves(r, 1024*int(row)/32+128*int(parts))), 2048*width/32+256
	add(device.OpToTiles, tiles, a.floats(r, int(n*stride/4), round%2 == 1), n, parts, width, stride, step, first(), 0, bits(0.18))
	add(device.OpToTiles, tiles, a.floats(r, int(n*stride/4), round%2 == 1), n, parts, width, stride, step, first(), 1, bits(1))
	states := a.bytes(randomBytes(r, 2*32*device.StateBytes), 128)
	for i := range uint32(64) {
		device.View[uint32](a.memory, states, 64*6)[6*i+2] = uint32(randomHalves(r, 1)[0] & 0x3fff)
	}
	folded := a.floats(r, 32, false)
	add(device.OpFold, folded, states, states+32*device.StateBytes, 1)
	add(device.OpFold, folded, states+32*device.StateBytes, 0, 0)
	for across := range uint32(2) {
		add(device.OpFromTiles, rows(), tiles, folded, n, width, stride, first(), a.alloc(128, 128), across)
	}
	turned := (row + 63) &^ 63
	many := n + 32 // rows: of two columns of tiles
	scaled, source := a.alloc(4*int(many), 128), a.floats(r, int(many*stride/4), round%2 == 1)
	clear(device.View[float32](a.memory, source, int(row)))
	add(device.OpRowsToTiles, a.alloc(2*64*int(turned+64), 128), scaled, source, many, turned+64, row, stride)
	for _, bias := range []uint32{0, a.floats(r, int(turned), false)} { // and added to what is there
		of := a.uint16s(randomHalves(r, int(2*32*turned)))
		add(device.OpTilesToRows, a.floats(r, int(many*turned), false), of, a.floats(r, int(many), false), a.floats(r, int(turned), false), bias, many, turned, 4*turned, bits(0.25), min(bias, 1))
	}
	return packets
}

func TestOperationsOnRowsEqualTheirDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 1))
	for round, s := range [][3]uint32{{1, 1, 256}, {3, 2, 64}, {2, 5, 32}, {4, 1, 288}} {
		d := open(t, Options{KeepTCM: true, Workers: []int{2, 3, 4, 6}[round], Seed: uint32(round + 1)})
		for _, base := range []uint32{1 << 16, device.TCMBytes} {
			for _, p := range rowOperations(r, &arena{d.Memory(), base}, s[0], s[1], s[2], round) {
				both(t, d, p)
			}
		}
	}
}
