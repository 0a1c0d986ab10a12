package tiling

import "fmt"

// explain says for each heuristic what was reached and what kept it from more.
func (r *Result) explain(l Limits) {
	c, m := r.Choice, r.Matrix
	say := func(format string, args ...any) { r.Why = append(r.Why, fmt.Sprintf(format, args...)) }

	regs := c.KLut / TableCols
	say("K_lut = %d: %d of %d registers hold tables; %s", c.KLut, regs, l.Registers, r.limit(Tiling{KLut: 2 * c.KLut, MIterD: c.MIterD, KIterD: 1}, l))
	say("M_iter_d = %d, %d rows share the tables; %s", c.MIterD, c.Rows(), r.limit(r.larger(func(t Tiling) (Tiling, bool) {
		t.MIterD++
		return t, t.MIterD <= m.M/Lookups
	}, func(t Tiling) bool { return (m.M/Lookups)%t.MIterD == 0 }), l))
	say("K_iter_p = %d, sums of %d columns; %s", c.KIterP, c.Cols(), r.limit(r.larger(func(t Tiling) (Tiling, bool) {
		t.KIterD++
		return t, t.Cols() <= m.K
	}, func(t Tiling) bool { return m.K%t.Cols() == 0 }), l))
	say("%d tiles of %d×%d: %d bytes by DMA, %d in fp16; all buffers and results take %d of %d bytes", c.Tiles(m), c.Rows(), c.Cols(),
		c.Packed(m), c.Unpacked(), c.memory(m, l), l.Memory)
}

// larger returns the next tiling that divides the matrix, or none.
func (r *Result) larger(next func(Tiling) (Tiling, bool), divides func(Tiling) bool) Tiling {
	t, ok := r.Choice, true
	for {
		if t, ok = next(t); !ok {
			return Tiling{}
		}
		if divides(t) {
			return t
		}
	}
}

// limit says why t was not chosen; the zero Tiling stands for "there is none".
func (r *Result) limit(t Tiling, l Limits) string {
	if t == (Tiling{}) {
		return "that is all there are"
	}
	switch t.broken(r.Matrix, l) {
	case Registers:
		return fmt.Sprintf("%d and the %d of a lookup are more than there are", t.KLut/TableCols, LookupRegs)
	case Columns:
		return fmt.Sprintf("tables lie in tiles of %d columns", TableTile)
	case OnChip:
		return fmt.Sprintf("the next size, %d×%d, would take %d bytes of TCM", t.Rows(), t.Cols(), t.memory(r.Matrix, l))
	case Parallel:
		return fmt.Sprintf("the next size, %d×%d, would give a thread %d of %d strips", t.Rows(), t.Cols(), t.share(r.Matrix, l), r.Matrix.M/Lookups)
	}
	return "a heuristic before this one decided"
}
