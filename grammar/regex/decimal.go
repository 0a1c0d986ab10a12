package regex

import (
	"cmp"
	"math/big"
	"strings"
)

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
		if !a.hold(setBytes) {
			return None
		}
		id = Expr(len(a.mods))
		a.mods = append(a.mods, d)
		a.modIDs[d] = id
	}
	f := flags(0)
	rest, beyond := d.rest, int64(1)
	for range d.left {
		rest, beyond = rest*10%d.divisor, beyond*10
	}
	if rest == 0 {
		f = nullable
	} else if d.point && d.divisor-rest >= beyond { // too few digits are left
		return None
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

// bound compares a decimal number without a sign, as far as it has been read, with
// another.
type bound struct {
	whole, fraction string // digits of the other, without needless zeros
	relation        Relation
	read            int16 // digits that have been read before the point, or behind it
	point           bool
	order           int8 // of what has been read, digit by digit
}

// Relation is how a number stands to another.
type Relation uint8

// The relations.
const (
	Less Relation = iota
	AtMost
	Equal
	AtLeast
	Greater
)

// mirrored is the relation of the negated numbers.
func (r Relation) mirrored() Relation { return Greater - r }

func (r Relation) holds(order int8) bool {
	switch r {
	case Less:
		return order < 0
	case AtMost:
		return order <= 0
	case Equal:
		return order == 0
	case AtLeast:
		return order >= 0
	}
	return order > 0
}

// mostDigits bounds the digits of a number to compare with.
const mostDigits = 64

// Compare matches, among the numbers that JSON writes without exponents, those that
// stand in the relation to a number. ok is false if that has too many digits. It is
// for use within And.
func (a *Arena) Compare(r Relation, to *big.Rat) (e Expr, ok bool) {
	places := 0
	for x := new(big.Rat).Set(to); !x.IsInt(); places++ {
		if places > mostDigits {
			return None, false
		}
		x.Mul(x, big.NewRat(10, 1))
	}
	text := new(big.Rat).Abs(to).FloatString(places)
	whole, fraction, _ := strings.Cut(text, ".")
	if len(whole) > mostDigits {
		return None, false
	}
	b := bound{whole: whole, fraction: strings.TrimRight(fraction, "0"), relation: r}
	zero := bound{whole: "0"}
	positive, negative := All, All // numbers without and with a sign
	switch m := r.mirrored(); {
	case to.Sign() >= 0: // of those with a sign all are less but zero
		positive = a.bound(b)
		switch {
		case to.Sign() == 0:
			zero.relation = m
			negative = a.bound(zero)
		case r == Less || r == AtMost:
		default:
			negative = None
		}
	default:
		b.relation = m
		negative = a.bound(b)
		if r != Greater && r != AtLeast {
			positive = None
		}
	}
	var digit Bytes
	digit.Add('0', '9')
	return a.Or(a.And(a.Seq(a.Set(digit), All), positive), a.seq(a.Byte('-'), negative)), true
}

func (a *Arena) bound(b bound) Expr {
	if b.order != 0 && (b.point || b.order > 0 && int(b.read) >= len(b.whole)) { // for good
		if b.relation.holds(b.order) {
			return All
		}
		return None
	}
	id, ok := a.boundIDs[b]
	if !ok {
		if !a.hold(setBytes) {
			return None
		}
		id = Expr(len(a.bounds))
		a.bounds = append(a.bounds, b)
		a.boundIDs[b] = id
	}
	order := b.order
	if !b.point && int(b.read) < len(b.whole) {
		order = -1
	} else if order == 0 && (!b.point && b.fraction != "" || b.point && int(b.read) < len(b.fraction)) {
		order = -1
	}
	f := flags(0)
	if b.relation.holds(order) && (b.point || b.read > 0) {
		f = nullable
	}
	return a.add(term{kind: kCompare, a: id}, f)
}

// compare is what follows a byte in a number that is compared.
func (a *Arena) compare(t term, c byte) Expr {
	b := a.bounds[t.a]
	switch {
	case c == '.' && !b.point:
		if int(b.read) < len(b.whole) {
			b.order = -1
		}
		b.point, b.read = true, 0
		return a.bound(b)
	case c < '0' || c > '9':
		return None
	}
	digits := b.whole
	if b.point {
		digits = b.fraction
	}
	switch {
	case int(b.read) < len(digits):
		if b.order == 0 {
			b.order = int8(cmp.Compare(c, digits[b.read]))
		}
		b.read++
	case !b.point:
		b.order = 1 // it is longer
	case b.order == 0 && c > '0':
		b.order = 1
	}
	return a.bound(b)
}
