package gguf

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// recoding says how blocks of a type can be rewritten: f turns one into the blocks of type
// to that hold the same elements.
type recoding struct {
	to Type
	f  func(dst, src []byte)
}

// recodings lists the recodings that depend on the type alone.
var recodings = map[Type]recoding{
	Q1_0_G32: {Q4_0, recodeSigns},
	Q4_Z32:   {Q5_0, recodeQ4Z(32)}, Q4_Z64: {Q5_0, recodeQ4Z(64)}, Q4_Z128: {Q5_0, recodeQ4Z(128)},
}

// Recoding tells how to rewrite a tensor in memory in a more common type that keeps every value exactly. f
// turns one block into the blocks of type to that hold the same elements; it is nil if there is no such
// type. The scale of I2_S is rounded to binary16, a relative error below 2⁻¹¹.
func (t *Tensor) Recoding() (to Type, f func(dst, src []byte)) {
	switch t.Type {
	case I2_S:
		return t.recodingI2S()
	case TQ1_0, TQ2_0, PTQ1_0, STQ1_0:
		p := pairsOf[t.Type]
		return PQ2_0, func(dst, src []byte) { p.recode(dst, src, src[p.scale:]) }
	}
	r := recodings[t.Type]
	return r.to, r.f
}

// recodingI2S gives each 128 weights the tensor's scale. Scales that binary16 has
// no normal number for cannot be kept.
func (t *Tensor) recodingI2S() (to Type, f func(dst, src []byte)) {
	const least, most = 0x1p-14, 65504
	scale := math.Float32frombits(binary.LittleEndian.Uint32(t.Data[len(t.Data)-t.Type.traits().tail:]))
	if s := abs(scale); s != 0 && !(s >= least && s <= most) {
		return 0, nil
	}
	d := binary.LittleEndian.AppendUint16(nil, vector.ToF16(scale))
	return PQ2_0, func(dst, src []byte) { pairsOf[I2_S].recode(dst, src, d) }
}

// recode writes a block as blocks of PQ2_0 with the f16 scale d.
func (p pairCodes) recode(dst, block, d []byte) {
	var codes [64]byte
	p.read(codes[:], block)
	for c := codes[:p.cols/4]; len(c) > 0; dst, c = dst[34:], c[32:] {
		copy(dst, d[:2])
		copy(dst[2:34], c)
	}
}
