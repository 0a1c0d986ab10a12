package regex

// Lot matches the texts that draw lot i of n, whatever they are: texts of different
// lots differ.
func (a *texts) Lot(i, n int) Expr {
	a.lots = true
	return lotOf(&a.algebra, term{kind: kLot, a: Expr(i), min: int32(n)})
}

// lotOf interns the state of a text whose lot is t.a; t.max is the lot of the text read so
// far.
func lotOf(a *algebra, t term) Expr {
	f := simple
	if t.max == int32(t.a) {
		f |= nullable
	}
	return a.add(t, f)
}

func drawByte(a *algebra, t term, b byte) Expr {
	t.max = (t.max*5 + int32(b)) % t.min
	return lotOf(a, t)
}
