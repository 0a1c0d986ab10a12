package regex

import (
	"errors"
	"math/big"
	"math/bits"
	"strings"
)

// Numbers are the numbers that a text may be, which is written as in JSON without an
// exponent.
type Numbers struct {
	Least, Most *big.Rat   // with themselves; nil: no such bound
	Multiple    *big.Rat   // of which it is one, positive; nil: of none
	Others      []*big.Rat // of which it is no multiple, positive
	Integer     bool       // it has no point
}

// ErrDigits says that a number has too many digits to be held to.
var ErrDigits = errors.New("it has too many digits")

// The digits that are written. Any decimal number of 15 is another float64, so that
// where multiples count nobody who reads one takes it for its neighbour.
const (
	mostDigits  = 24 // before the point, and after it
	exactDigits = 15
	someDigits  = 6 // after the point, where a number is not to be a multiple
	mostModulus = 1 << 53
	mostTries   = 1 << 12 // multiples that are looked at for one that is no other's
)

// Number matches the texts of numbers. An error is ErrDigits.
func (a *texts) Number(n Numbers) (Expr, error) {
	d := numbers{decimals: mostDigits, digits: mostDigits, pointed: !n.Integer, modulus: 1, all: 1}
	multiple := n.Multiple
	if n.Integer {
		d.decimals = 0
		if multiple != nil { // an integer that is a multiple of p/q is one of p
			if multiple = new(big.Rat).SetInt(multiple.Num()); multiple.Num().IsInt64() && multiple.Num().Int64() == 1 {
				multiple = nil
			}
		}
	} else if len(n.Others) > 0 {
		d.decimals = someDigits
	}
	if multiple != nil && !n.Integer {
		var exact bool
		if d.decimals, exact = multiple.FloatPrec(); !exact {
			return None, ErrDigits
		}
	}
	if multiple != nil || len(n.Others) > 0 {
		d.digits = exactDigits - d.decimals
	}
	if d.digits < 1 {
		return None, ErrDigits
	}
	ok := true
	units := func(of *big.Rat) int64 { // of which a number's units are a multiple if it is one of this
		num := new(big.Int).Mul(of.Num(), power10(d.decimals))
		num.Quo(num, new(big.Int).GCD(nil, nil, num, of.Denom()))
		if !num.IsInt64() || num.Int64() > mostModulus {
			ok = false
			return 1
		}
		m := num.Int64()
		all := new(big.Int).Mul(big.NewInt(d.all/gcd(d.all, m)), num)
		if ok = ok && all.IsInt64() && all.Int64() <= mostModulus; ok {
			d.all = all.Int64()
		}
		return m
	}
	if multiple != nil {
		d.modulus = units(multiple)
	}
	for _, other := range n.Others {
		d.others = append(d.others, units(other))
	}
	if !ok {
		return None, ErrDigits
	}
	d.interval[0] = d.within(n.Least, n.Most)
	negated := func(r *big.Rat) *big.Rat {
		if r == nil {
			return nil
		}
		return new(big.Rat).Neg(r)
	}
	d.interval[1] = d.within(negated(n.Most), negated(n.Least))
	a.numbers = append(a.numbers, d)
	return a.number(reading{of: int32(len(a.numbers) - 1)}), nil
}

func gcd(x, y int64) int64 {
	for y != 0 {
		x, y = y, x%y
	}
	return x
}

func power10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// within returns the bounds of numbers from 0 up, in units.
func (d *numbers) within(least, most *big.Rat) magnitudes {
	var m magnitudes
	scale := new(big.Rat).SetInt(power10(d.decimals))
	if least != nil && least.Sign() > 0 {
		up := new(big.Rat).Mul(least, scale)
		n := new(big.Int).Add(up.Num(), new(big.Int).Sub(up.Denom(), big.NewInt(1)))
		m.least, m.leastAt = d.digitsOf(n.Quo(n, up.Denom()))
		m.none = m.leastAt > d.digits
	}
	if most != nil {
		if most.Sign() < 0 {
			return magnitudes{none: true}
		}
		down := new(big.Rat).Mul(most, scale)
		m.most, m.mostAt = d.digitsOf(new(big.Int).Quo(down.Num(), down.Denom()))
		if m.mostAt > d.digits {
			m.most, m.mostAt = "", 0
		}
	}
	return m
}

// digitsOf returns the digits of a number of units, and how many stand before the point.
func (d *numbers) digitsOf(units *big.Int) (string, int) {
	text := units.String()
	if len(text) <= d.decimals {
		text = strings.Repeat("0", d.decimals+1-len(text)) + text
	}
	return text, len(text) - d.decimals
}

// number interns what has been read of a number. It is None if no number goes on so,
// and so nothing has to search whether one does.
func (a *algebra) number(r reading) Expr {
	id, ok := a.readingIDs[r]
	if ok {
		return id
	}
	d := &a.numbers[r.of]
	if !d.completes(r) || !a.hold(setBytes) {
		return None
	}
	f := simple
	if d.ends(r) {
		f |= nullable
	}
	if id = a.add(term{kind: kNumber, a: Expr(len(a.readings))}, f); id != None {
		a.readings = append(a.readings, r)
		a.readingIDs[r] = id
	}
	return id
}

// digitOf returns what follows a byte in a number.
func digitOf(a *algebra, t term, b byte) Expr {
	at := a.readings[t.a]
	r, ok := a.numbers[at.of].read(at, b)
	if !ok {
		return None
	}
	return a.number(r)
}

// read returns r with one more byte.
func (d *numbers) read(r reading, b byte) (reading, bool) {
	m := &d.interval[0]
	if r.signed {
		m = &d.interval[1]
	}
	switch {
	case b == '-':
		ok := r.phase == numberBegins
		r.phase, r.signed = numberSigned, true
		return r, ok
	case b == '.':
		if !d.pointed || r.phase != numberZero && r.phase != numberWhole {
			return r, false
		}
		if least, most := m.compared(r, int(r.whole)); least < 0 || most > 0 {
			return r, false
		} else {
			r.least, r.most = least, most
		}
		r.phase, r.whole = numberPoint, 0
		return r, true
	case b < '0' || b > '9':
		return r, false
	}
	least, most := m.least, m.most // with which the digit is compared
	switch r.phase {
	case numberBegins, numberSigned:
		if r.phase = numberWhole; b == '0' {
			r.phase = numberZero
		}
	case numberZero:
		return r, false
	case numberWhole:
		if int(r.whole) >= d.digits {
			return r, false
		}
	case numberPoint:
		if r.fraction >= mostDigits || int(r.fraction) >= d.decimals && b != '0' {
			return r, false
		}
		if r.fraction++; int(r.fraction) > d.decimals {
			return r, true
		}
		least, most = least[m.leastAt:], most[m.mostAt:]
	}
	at := int(r.fraction) - 1
	if r.phase != numberPoint {
		least, most, at = least[:m.leastAt], most[:m.mostAt], int(r.whole)
		r.whole++
	}
	r.least, r.most = order(r.least, least, at, b), order(r.most, most, at, b)
	hi, lo := bits.Mul64(uint64(r.rest), 10)
	lo, carry := bits.Add64(lo, uint64(b-'0'), 0)
	r.rest = int64(bits.Rem64(hi+carry, lo, uint64(d.all)))
	return r, true
}

// order compares one digit more.
func order(before int8, digits string, at int, b byte) int8 {
	switch {
	case before != 0 || at >= len(digits):
		return before
	case b < digits[at]:
		return -1
	case b > digits[at]:
		return 1
	}
	return 0
}

// compared returns how a number, with digits before the point, compares with the bounds:
// 0 is not decided yet. What has no bound lies within it.
func (m *magnitudes) compared(r reading, digits int) (least, most int8) {
	by := func(order int8, at int) int8 {
		switch {
		case r.phase == numberPoint || digits == at:
			return order
		case digits < at:
			return -1
		}
		return 1
	}
	least, most = 1, -1
	if m.least != "" {
		least = by(r.least, m.leastAt)
	}
	if m.most != "" {
		most = by(r.most, m.mostAt)
	}
	return least, most
}

// ends reports whether a number may end so.
func (d *numbers) ends(r reading) bool {
	switch r.phase {
	case numberZero, numberWhole:
		return d.among(r, int(r.whole), true)
	case numberPoint:
		return r.fraction > 0 && d.among(r, 0, true)
	}
	return false
}

// completes reports whether a number may begin so.
func (d *numbers) completes(r reading) bool {
	switch r.phase {
	case numberBegins, numberSigned:
		for _, b := range []byte("-0123456789") {
			if next, ok := d.read(r, b); ok && d.completes(next) {
				return true
			}
		}
		return false
	case numberWhole:
		for n := int(r.whole); n <= d.digits; n++ {
			if d.among(r, n, false) {
				return true
			}
		}
		return false
	}
	return d.among(r, int(r.whole), false)
}

// among reports whether a number that begins so, with digits before the point, is one
// of those to match: as it stands, or with some digits more.
func (d *numbers) among(r reading, digits int, ended bool) bool {
	m := &d.interval[0]
	if r.signed {
		m = &d.interval[1]
	}
	least, most := m.compared(r, digits)
	if m.none || least < 0 || most > 0 {
		return false
	}
	fraction := min(int(r.fraction), d.decimals)
	left := digits - int(r.whole) + d.decimals - fraction // digits to come
	if r.phase == numberPoint {
		left = d.decimals - fraction
	}
	// What is to come, as a number of left digits, lies from lo to hi.
	var lo, hi *big.Int
	if least == 0 {
		lo, _ = new(big.Int).SetString("0"+m.least[len(m.least)-left:], 10)
	}
	if most == 0 {
		hi, _ = new(big.Int).SetString("0"+m.most[len(m.most)-left:], 10)
	}
	if lo == nil {
		lo = new(big.Int)
	}
	if ended {
		if lo.Sign() > 0 {
			return false
		}
		hi = new(big.Int)
	}
	if d.all == 1 && len(d.others) == 0 {
		return hi == nil || lo.Cmp(hi) <= 0
	}
	if hi == nil {
		hi = power10(left)
		hi.Sub(hi, big.NewInt(1))
	}
	base := new(big.Int).Mul(big.NewInt(r.rest), power10(left)) // but for multiples of all
	first := new(big.Int).Add(base, lo)
	modulus := big.NewInt(d.modulus)
	if over := new(big.Int).Mod(first, modulus); over.Sign() > 0 {
		first.Add(first, over.Sub(modulus, over))
	}
	hi.Add(hi, base)
	for range mostTries {
		if first.Cmp(hi) > 0 {
			return false
		}
		another := false
		for _, other := range d.others {
			another = another || new(big.Int).Mod(first, big.NewInt(other)).Sign() == 0
		}
		if !another {
			return true
		}
		first.Add(first, modulus)
	}
	return false
}
