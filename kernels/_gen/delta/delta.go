// Package delta emits the kernels of kernels/delta.
package delta

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Kernels emits the update of a tile of 16 columns.
func Kernels() {
	update("updateAVX2", narrow{})
	update("updateAVX512", wide{})
}

// chains is how many sums a column has, of every fourth row each.
const chains = 4

// rowBytes is the size of a row of a tile.
const rowBytes = 64

// isa is what differs between instruction sets. A value is a row of a tile.
type isa interface {
	blank() []reg.VecVirtual
	// readRow adds row m times the number at f to sum.
	readRow(m, f Mem, sum []reg.VecVirtual)
	// writeRow replaces row m by decay·row + k·delta and adds q times the result to sum.
	writeRow(m, k, q Mem, decay, delta, sum []reg.VecVirtual)
}

// update emits the gated delta rule over n tokens.
func update(name string, e isa) {
	emit.Text(name, "func(state *float32, keys int, q *float32, k *float32, v *float32, stride int, decay *float32, beta *float32, gates int, n int)")
	emit.Contract(name+" takes n > 0 tokens through state[keys][16], keys a positive multiple of 4, one after the other: with",
		"u = Σ k[i]·state[i] and d = beta·(v - decay·u) it sets state[i] = decay·state[i] + k[i]·d, and v[16] = Σ q[i]·state[i].",
		"The numbers of the next token are stride bytes on, of decay and beta gates bytes.")
	state, keys := emit.Arg("state"), emit.Arg("keys")
	q, k, v := emit.Arg("q"), emit.Arg("k"), emit.Arg("v")
	stride, decay, beta, gates, n := emit.Arg("stride"), emit.Arg("decay"), emit.Arg("beta"), emit.Arg("gates"), emit.Arg("n")
	row, i := GP64(), GP64()
	rows := func(label string, body func(j int)) {
		MOVQ(state, row)
		XORQ(i, i)
		Label(label)
		for j := range chains {
			body(j)
		}
		ADDQ(U32(chains*rowBytes), row)
		ADDQ(Imm(chains), i)
		CMPQ(i, keys)
		JL(LabelRef(label))
	}
	at := func(p reg.Register, j int) Mem { return Mem{Base: p, Index: i, Scale: 4, Disp: 4 * j} }
	Label("token")
	sums := zeros(e)
	rows("read", func(j int) { e.readRow(Mem{Base: row, Disp: rowBytes * j}, at(k, j), sums[j]) })
	u := total(sums)
	g, b, d := e.blank(), e.blank(), e.blank()
	for c := range u {
		VBROADCASTSS(Mem{Base: decay}, g[c])
		VBROADCASTSS(Mem{Base: beta}, b[c])
		VMOVUPS(Mem{Base: v, Disp: 32 * c}, d[c])
		VFNMADD231PS(u[c], g[c], d[c])
		VMULPS(b[c], d[c], d[c])
	}
	sums = zeros(e)
	rows("write", func(j int) {
		e.writeRow(Mem{Base: row, Disp: rowBytes * j}, at(k, j), at(q, j), g, d, sums[j])
	})
	for c, o := range total(sums) {
		VMOVUPS(o, Mem{Base: v, Disp: 32 * c})
	}
	for _, p := range []reg.Register{q, k, v} {
		ADDQ(stride, p)
	}
	ADDQ(gates, decay)
	ADDQ(gates, beta)
	DECQ(n)
	JNE(LabelRef("token"))
	emit.Done()
}

// zeros are the sums of all chains.
func zeros(e isa) (sums [][]reg.VecVirtual) {
	for range chains {
		sum := e.blank()
		for _, s := range sum {
			emit.Zero(s)
		}
		sums = append(sums, sum)
	}
	return sums
}

// total is the sum of the chains: the even ones, the odd ones, both.
func total(sums [][]reg.VecVirtual) []reg.VecVirtual {
	for c := range sums[0] {
		VADDPS(sums[2][c], sums[0][c], sums[0][c])
		VADDPS(sums[3][c], sums[1][c], sums[1][c])
		VADDPS(sums[1][c], sums[0][c], sums[0][c])
	}
	return sums[0]
}

// wide has a row in one register.
type wide struct{}

func (wide) blank() []reg.VecVirtual { return []reg.VecVirtual{ZMM()} }

func (wide) readRow(m, f Mem, sum []reg.VecVirtual) {
	s := ZMM()
	VMOVUPS(m, s)
	VFMADD231PS_BCST(f, s, sum[0])
}

func (wide) writeRow(m, k, q Mem, decay, delta, sum []reg.VecVirtual) {
	s := ZMM()
	VMULPS(m, decay[0], s)
	VFMADD231PS_BCST(k, delta[0], s)
	VMOVUPS(s, m)
	VFMADD231PS_BCST(q, s, sum[0])
}

// narrow has it in two.
type narrow struct{}

func (narrow) blank() []reg.VecVirtual { return []reg.VecVirtual{YMM(), YMM()} }

func (narrow) readRow(m, f Mem, sum []reg.VecVirtual) {
	b := YMM()
	VBROADCASTSS(f, b)
	for c := range sum {
		VFMADD231PS(m.Offset(32*c), b, sum[c])
	}
}

func (narrow) writeRow(m, k, q Mem, decay, delta, sum []reg.VecVirtual) {
	for c := range sum {
		s, b := YMM(), YMM()
		VMULPS(m.Offset(32*c), decay[c], s)
		VBROADCASTSS(k, b)
		VFMADD231PS(b, delta[c], s)
		VMOVUPS(s, m.Offset(32*c))
		VBROADCASTSS(q, b)
		VFMADD231PS(b, s, sum[c])
	}
}
