package emit

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rows addresses rows a fixed stride apart: a pointer for every three rows,
// which the stride register, once and twice, reaches.
type Rows struct {
	Base []reg.GPVirtual
	ld   reg.GPVirtual
}

// NewRows makes pointers to n rows from the named pointer parameter on, which
// are ld << shift bytes apart.
func NewRows(p, ld string, shift uint64, n int) Rows {
	r := Rows{Base: []reg.GPVirtual{Load(Param(p), GP64()).(reg.GPVirtual)}, ld: GP64()}
	if n == 1 {
		return r
	}
	Load(Param(ld), r.ld)
	if shift > 0 {
		SHLQ(Imm(shift), r.ld)
	}
	for i := 3; i < n; i += 3 {
		next := GP64()
		LEAQ(Mem{Base: r.Base[len(r.Base)-1], Index: r.ld, Scale: 2}, next)
		ADDQ(r.ld, next)
		r.Base = append(r.Base, next)
	}
	return r
}

// At returns the address disp bytes into a row.
func (r Rows) At(row, disp int) Mem {
	m := Mem{Base: r.Base[row/3], Disp: disp}
	if row%3 > 0 {
		m.Index, m.Scale = r.ld, uint8(row%3)
	}
	return m
}

// Advance moves all rows on.
func (r Rows) Advance(bytes int) {
	for _, b := range r.Base {
		ADDQ(U32(uint32(bytes)), b)
	}
}

// Zero clears a register.
func Zero(v reg.VecVirtual) {
	if v.Size() == 64 {
		VPXORD(v, v, v)
		return
	}
	VXORPS(v, v, v)
}

// FillLanes sets every 32-bit lane of v.
func FillLanes(bits uint32, v reg.VecVirtual) {
	t, x := GP32(), XMM()
	MOVL(U32(bits), t)
	VMOVD(t, x)
	VPBROADCASTD(x, v)
}

// Skip goes on to the row n rows below.
func (r Rows) Skip(n int) {
	step := r.ld
	if n > 1 {
		step = GP64()
		IMUL3Q(Imm(uint64(n)), r.ld, step)
	}
	for _, b := range r.Base {
		ADDQ(step, b)
	}
}

// Retreat moves all rows back.
func (r Rows) Retreat(bytes reg.Register) {
	for _, b := range r.Base {
		SUBQ(bytes, b)
	}
}
