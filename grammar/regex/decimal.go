package regex

import "math/big"

// divisibility is how far a decimal number has been read that is to be a multiple.
type divisibility struct {
	divisor int64 // of the number times 10^scale
	rest    int64
	left    int8 // digits behind the point that still count
	point   bool // has been read
}

// mostDivisor bounds divisors so that a digit more does not overflow.
const mostDivisor = 1 << 53

// MultipleOf matches, among the numbers that JSON writes without exponents, the
// multiples of a positive decimal number. ok is false if it has too many digits. It
// is for use within And.
func (a *Arena) MultipleOf(of *big.Rat) (e Expr, ok bool) {
	scaled := new(big.Rat).Set(of)
	ten := big.NewRat(10, 1)
	scale := 0
	for ; !scaled.IsInt() && scale < 18; scale++ {
		scaled.Mul(scaled, ten)
	}
	if !scaled.IsInt() || !scaled.Num().IsInt64() || scaled.Num().Int64() > mostDivisor || scaled.Sign() <= 0 {
		return None, false
	}
	return a.modulo(divisibility{divisor: scaled.Num().Int64(), left: int8(scale)}), true
}

func (a *Arena) modulo(d divisibility) Expr {
	id, ok := a.modIDs[d]
	if !ok {
		id = Expr(len(a.mods))
		a.mods = append(a.mods, d)
		a.modIDs[d] = id
	}
	f := flags(0)
	rest := d.rest
	for range d.left {
		rest = rest * 10 % d.divisor
	}
	if rest == 0 {
		f = nullable
	}
	return a.add(term{kind: kMod, a: id}, f)
}

// divide is what follows a byte in a multiple.
func (a *Arena) divide(t term, b byte) Expr {
	d := a.mods[t.a]
	switch {
	case b == '-':
		return a.modulo(d)
	case b == '.' && !d.point:
		d.point = true
		return a.modulo(d)
	case b < '0' || b > '9':
		return None
	case d.point && d.left == 0:
		if b != '0' {
			return None
		}
		return a.modulo(d)
	}
	d.rest = (d.rest*10 + int64(b-'0')) % d.divisor
	if d.point {
		d.left--
	}
	return a.modulo(d)
}
