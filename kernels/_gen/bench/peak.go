// Package bench emits what kernels/bench measures the peaks of a machine with.
package bench

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Peak emits what bench measures a machine's limits with.
func Peak() {
	throughput("peakMaddAVX2", "multiply-accumulates of VPMADDUBSW and VPADDW", 14*32, 14, YMM, func(one, acc reg.VecVirtual) {
		t := YMM()
		VPMADDUBSW(one, one, t)
		VPADDW(t, acc, acc)
	})
	throughput("peakDot"+emit.VexSuffix, "multiply-accumulates of VPDPBUSD", 14*32, 14, YMM, func(one, acc reg.VecVirtual) {
		VPDPBUSD(one, one, acc)
	})
	throughput("peakVNNIAVX512", "multiply-accumulates of VPDPBUSD", 16*64, 16, ZMM, func(one, acc reg.VecVirtual) {
		VPDPBUSD(one, one, acc)
	})
	for _, w := range []struct {
		isa   string
		lanes int
		n     int
		reg   func() reg.VecVirtual
	}{{"AVX2", 8, 14, YMM}, {"AVX512", 16, 16, ZMM}} {
		throughput("peakFMA"+w.isa, "multiply-accumulates of VFMADD231PS", w.n*w.lanes, w.n, w.reg, func(one, acc reg.VecVirtual) {
			VFMADD231PS(one, one, acc)
		})
	}
	tiles()
	readMemory("peakReadAVX2", false)
	readMemory("peakReadAheadAVX2", true)
}

// tiles emits the product of whole tiles: four sums, of two tiles of each side.
func tiles() {
	const name, sums = "peakAMXAVX512", 4
	emit.Text(name, "func(rounds int, sizes *byte)")
	emit.Contract(fmt.Sprintf("%s does rounds × %d multiply-accumulates of TDPBUSD. rounds is positive; sizes are of tiles that", name, sums*16*16*64),
		"are all whole.")
	rounds := emit.Arg("rounds")
	emit.TileConfigure(Mem{Base: emit.Arg("sizes")})
	for t := range emit.Tile(8) {
		emit.TileZero(t)
	}
	Label("loop")
	for t := range emit.Tile(sums) {
		emit.TileDot(6+t%2, 4+t/2, t, false, true)
	}
	DECQ(rounds)
	JNE(LabelRef("loop"))
	emit.TileRelease()
	RET()
}

func throughput(name, what string, macs, n int, register func() reg.VecVirtual, op func(one, acc reg.VecVirtual)) {
	emit.Text(name, "func(rounds int)")
	emit.Contract(fmt.Sprintf("%s does rounds × %d %s. rounds is positive.", name, macs, what))
	rounds := emit.Arg("rounds")
	zero := func(v reg.VecVirtual) {
		if v.Size() == 64 {
			VPXORD(v, v, v)
		} else {
			VPXOR(v, v, v)
		}
	}
	one := register()
	zero(one)
	acc := make([]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = register()
		zero(acc[i])
	}
	Label("loop")
	for _, a := range acc {
		op(one, a)
	}
	DECQ(rounds)
	JNE(LabelRef("loop"))
	emit.Done()
}

// prefetch is the distance by which memory is prefetched, in bytes.
const prefetch = 8192

// readMemory emits a read in order. Whether prefetching helps differs
// between processors.
func readMemory(name string, ahead bool) {
	how := ""
	if ahead {
		how = ", prefetching"
	}
	emit.Text(name, "func(p *byte, n int)")
	emit.Contract(fmt.Sprintf("%s loads n bytes in order%s. n is a positive multiple of 256.", name, how))
	p, n := emit.Arg("p"), emit.Arg("n")
	acc := make([]reg.VecVirtual, 8)
	for i := range acc {
		acc[i] = YMM()
		emit.ZeroY(acc[i])
	}
	Label("loop")
	for i, a := range acc {
		if ahead && i%2 == 0 {
			PREFETCHT0(Mem{Base: p, Disp: prefetch + 32*i})
		}
		VPOR(Mem{Base: p, Disp: 32 * i}, a, a)
	}
	ADDQ(U32(256), p)
	SUBQ(U32(256), n)
	JNE(LabelRef("loop"))
	emit.Done()
}
