package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows addresses rows a fixed stride apart: a pointer for every three rows,
// which the stride register, once and twice, reaches.
type rows struct {
	base []reg.GPVirtual
	ld   reg.GPVirtual
}

// newRows makes pointers to n rows from the named pointer parameter on, which
// are ld << shift bytes apart.
func newRows(p, ld string, shift uint64, n int) rows {
	r := rows{base: []reg.GPVirtual{Load(Param(p), GP64()).(reg.GPVirtual)}, ld: GP64()}
	if n == 1 {
		return r
	}
	Load(Param(ld), r.ld)
	if shift > 0 {
		SHLQ(Imm(shift), r.ld)
	}
	for i := 3; i < n; i += 3 {
		next := GP64()
		LEAQ(Mem{Base: r.base[len(r.base)-1], Index: r.ld, Scale: 2}, next)
		ADDQ(r.ld, next)
		r.base = append(r.base, next)
	}
	return r
}

// at is the address disp bytes into a row.
func (r rows) at(row, disp int) Mem {
	m := Mem{Base: r.base[row/3], Disp: disp}
	if row%3 > 0 {
		m.Index, m.Scale = r.ld, uint8(row%3)
	}
	return m
}

// advance moves all rows on.
func (r rows) advance(bytes int) {
	for _, b := range r.base {
		ADDQ(U32(uint32(bytes)), b)
	}
}

// zero clears a register.
func zero(v reg.VecVirtual) {
	if v.Size() == 64 {
		VPXORD(v, v, v)
		return
	}
	VXORPS(v, v, v)
}

// fillLanes sets every 32-bit lane of v.
func fillLanes(bits uint32, v reg.VecVirtual) {
	t, x := GP32(), XMM()
	MOVL(U32(bits), t)
	VMOVD(t, x)
	VPBROADCASTD(x, v)
}

// retreat moves all rows back.
func (r rows) retreat(bytes reg.Register) {
	for _, b := range r.base {
		SUBQ(bytes, b)
	}
}
