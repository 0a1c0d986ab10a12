package ternary

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// madBlock multiplies one block of a strip with n tokens by VPDPBUSD. A register
// holds 16 rows × 4 bytes; trits enter as digits 0..2, a trit position (plane)
// at a time, and every activation is broadcast once for all 64 rows.
//
// Vector operations of a block, n = 4 (the two multiply pipes of four take 2
// VPDPBUSD a cycle on Zen 5, so 2 other operations a cycle cost nothing):
//
//	      VPDPBUSD  unpacking                     loads
//	I2    64        28  and, 3 × shift+and        4 + 16
//	I1    80        56  the same + 7 a register   4 + 20
type madBlock struct {
	g, n   int
	w, act reg.Register
	sum    func(plane int) [][]reg.VecVirtual // [4][n] accumulators that a plane adds to
	three  reg.VecVirtual
	low    lowTrits // g = 5
}

// lowTrits are the constants that split a byte of five trits.
type lowTrits struct {
	bitPairs       [2]reg.VecVirtual
	eightyOne, one reg.VecVirtual
}

// newMadBlock loads the constants. bitPairs is the table of 128 bytes whose first
// 81 hold four trits as digits of two bits; only g = 5 reads it.
func newMadBlock(g, n int, w, act reg.Register, bitPairs Mem, sum func(plane int) [][]reg.VecVirtual) *madBlock {
	s := &madBlock{g: g, n: n, w: w, act: act, sum: sum, three: broadcast(3)}
	if g == 5 {
		for i := range s.low.bitPairs {
			m := bitPairs
			m.Disp = 64 * i
			s.low.bitPairs[i] = ZMM()
			VMOVDQU64(m, s.low.bitPairs[i])
		}
		s.low.eightyOne, s.low.one = broadcast(81), broadcast(1)
	}
	return s
}

// ops returns the instructions of a block, in order, for a caller to emit or to mix
// with others.
func (s *madBlock) ops() []func() {
	var ops []func()
	emit := func(f ...func()) { ops = append(ops, f...) }
	x, p := make([]reg.VecVirtual, 4), make([]reg.VecVirtual, 4)
	for r := range x {
		emit(func() { x[r] = ZMM(); VMOVDQU64(Mem{Base: s.w, Disp: 64 * r}, x[r]) })
	}
	if s.g == 5 {
		for r := range x {
			emit(s.split(x, p, r)...)
		}
		emit(s.multiply(4, p)...)
	}
	for j := range 4 {
		for r := range x {
			emit(s.bitPair(x, p, r, j)...)
		}
		emit(s.multiply(j, p)...)
	}
	return ops
}

// split leaves trit 4 of x[r] in p[r] and the four others in x[r] as bit pairs.
func (s *madBlock) split(x, p []reg.VecVirtual, r int) []func() {
	var k reg.OpmaskVirtual
	return []func(){
		func() { k = K(); VPCMPUB(Imm(5), s.low.eightyOne, x[r], k) }, // x >= 81: trit 4 is not -1
		func() { p[r] = ZMM(); VMOVDQU8_Z(s.low.one, k, p[r]) },
		func() { VPSUBB(s.low.eightyOne, x[r], k, x[r]) },
		func() { k = K(); VPCMPUB(Imm(5), s.low.eightyOne, x[r], k) }, // still: it is +1
		func() { VPADDB(s.low.one, p[r], k, p[r]) },
		func() { VPSUBB(s.low.eightyOne, x[r], k, x[r]) },
		func() { VPERMI2B(s.low.bitPairs[1], s.low.bitPairs[0], x[r]) },
	}
}

// bitPair leaves trit j of x[r] in p[r].
func (s *madBlock) bitPair(x, p []reg.VecVirtual, r, j int) []func() {
	if j == 0 {
		return []func(){func() { p[r] = ZMM(); VPANDD(s.three, x[r], p[r]) }}
	}
	return []func(){
		func() { p[r] = ZMM(); VPSRLW(Imm(uint64(2*j)), x[r], p[r]) },
		func() { VPANDD(s.three, p[r], p[r]) },
	}
}

// multiply adds the products of plane j.
func (s *madBlock) multiply(j int, p []reg.VecVirtual) []func() {
	var ops []func()
	for i := range s.n {
		var b reg.VecVirtual
		ops = append(ops, func() { b = ZMM(); VPBROADCASTD(Mem{Base: s.act, Disp: (j*s.n + i) * 4}, b) })
		for r := range p {
			ops = append(ops, func() { VPDPBUSD(b, p[r], s.sum(j)[r][i]) })
		}
	}
	return ops
}

// next moves on to the following block.
func (s *madBlock) next() {
	ADDQ(U32(stripBytes), s.w)
	ADDQ(U32(uint32(4*s.g*s.n)), s.act)
}
