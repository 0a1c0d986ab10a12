package answer

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// The bounds of what is computed with; what exceeds them is compared as text.
const (
	maxTerms = 32   // of a polynomial
	maxPower = 16   // of one with several terms
	maxName  = 512  // bytes of what is not taken apart
	maxBits  = 1024 // of a numerator or denominator
	maxRoot  = 1e9  // that is freed of squares
)

// term is a coefficient times √root times named factors to integer powers.
type term struct {
	coef  *big.Rat
	root  int64          // free of squares; 1: no root
	atoms map[string]int // variables, constants such as π, and what is not taken apart
}

// polynomial is a sum of terms by their keys; no coefficient is zero. A nil one
// stands for what cannot be computed.
type polynomial map[string]term

// key returns the same for terms that differ in their coefficients alone.
func (t term) key() string {
	var b strings.Builder
	if t.root != 1 {
		fmt.Fprintf(&b, "√%d", t.root)
	}
	for _, name := range slices.Sorted(maps.Keys(t.atoms)) {
		fmt.Fprintf(&b, "·%s^%d", name, t.atoms[name])
	}
	return b.String()
}

func constant(v *big.Rat) polynomial { return sum(term{v, 1, nil}) }

// atom returns a name by itself.
func atom(name string) polynomial {
	if len(name) > maxName {
		return nil
	}
	return sum(term{big.NewRat(1, 1), 1, map[string]int{name: 1}})
}

// sum adds terms.
func sum(terms ...term) polynomial {
	p := polynomial{}
	for _, t := range terms {
		key := t.key()
		c := t.coef
		if old, ok := p[key]; ok {
			c = new(big.Rat).Add(old.coef, c)
		}
		if c.Sign() == 0 {
			delete(p, key)
			continue
		}
		if c.Num().BitLen() > maxBits || c.Denom().BitLen() > maxBits || len(p) >= maxTerms {
			return nil
		}
		p[key] = term{c, t.root, t.atoms}
	}
	return p
}

// terms returns p's in one order: whether a sum of many that cancel is too long depends on it.
func (p polynomial) terms() []term {
	list := make([]term, 0, len(p))
	for _, key := range slices.Sorted(maps.Keys(p)) {
		list = append(list, p[key])
	}
	return list
}

func (p polynomial) plus(q polynomial) polynomial {
	if p == nil || q == nil {
		return nil
	}
	return sum(append(p.terms(), q.terms()...)...)
}

func (p polynomial) times(q polynomial) polynomial {
	if p == nil || q == nil || len(p)*len(q) > maxTerms*maxTerms/4 {
		return nil
	}
	var all []term
	others := q.terms()
	for _, a := range p.terms() {
		for _, b := range others {
			all = append(all, a.times(b))
		}
	}
	return sum(all...)
}

// scaled returns p times a number.
func (p polynomial) scaled(by *big.Rat) polynomial { return p.times(constant(by)) }

func (p polynomial) negated() polynomial { return p.scaled(big.NewRat(-1, 1)) }

// times multiplies roots, and makes -1 of i².
func (t term) times(u term) term {
	out := term{new(big.Rat).Mul(t.coef, u.coef), 1, map[string]int{}}
	common := gcd(t.root, u.root)
	out.coef.Mul(out.coef, big.NewRat(common, 1))
	out.root = t.root / common * (u.root / common)
	for _, atoms := range []map[string]int{t.atoms, u.atoms} {
		for name, n := range atoms {
			if out.atoms[name] += n; out.atoms[name] == 0 {
				delete(out.atoms, name)
			}
		}
	}
	if n, ok := out.atoms["i"]; ok {
		n = (n%4 + 4) % 4
		delete(out.atoms, "i")
		if n >= 2 {
			out.coef.Neg(out.coef)
		}
		if n%2 == 1 {
			out.atoms["i"] = 1
		}
	}
	return out
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// number returns the value of a polynomial without roots and names.
func (p polynomial) number() (*big.Rat, bool) {
	if p != nil && len(p) == 0 {
		return new(big.Rat), true
	}
	t, ok := p[""]
	return t.coef, ok && len(p) == 1
}

// inverse returns 1/p: of one term exactly, of a sum of two roots or of a complex
// number by its conjugate; any other sum becomes a name.
func (p polynomial) inverse() polynomial {
	if len(p) == 0 {
		return nil
	}
	if len(p) == 1 {
		t := p.terms()[0]
		out := term{new(big.Rat).Inv(t.coef), t.root, map[string]int{}}
		out.coef.Quo(out.coef, big.NewRat(t.root, 1))
		for name, n := range t.atoms {
			out.atoms[name] = -n
		}
		return sum(out.times(term{big.NewRat(1, 1), 1, nil})) // where it is i, normalised
	}
	if len(p) == 2 {
		two := p.terms()
		conjugate := sum(two[0]).plus(sum(two[1]).negated())
		if v, ok := p.times(conjugate).number(); ok && v.Sign() != 0 {
			return conjugate.scaled(new(big.Rat).Inv(v))
		}
	}
	monic, lead := p.monic()
	if monic == nil {
		return nil
	}
	return atom("(" + monic.String() + ")^-1").scaled(new(big.Rat).Inv(lead))
}

// monic divides p, which is not zero, by the coefficient of its first term.
func (p polynomial) monic() (polynomial, *big.Rat) {
	lead := p[slices.Min(slices.Collect(maps.Keys(p)))].coef
	return p.scaled(new(big.Rat).Inv(lead)), lead
}

// power returns p to an exponent.
func (p polynomial) power(e polynomial) polynomial {
	if p == nil || e == nil {
		return nil
	}
	v, ok := e.number()
	switch {
	case !ok:
	case v.IsInt() && v.Num().IsInt64():
		n := v.Num().Int64()
		switch {
		case n < 0:
			return p.power(constant(new(big.Rat).Neg(v))).inverse()
		case n <= maxPower || len(p) == 1 && n <= maxBits:
			out := constant(big.NewRat(1, 1))
			for ; n > 0 && out != nil; n >>= 1 {
				if n&1 == 1 {
					out = out.times(p)
				}
				if n > 1 {
					p = p.times(p)
				}
			}
			return out
		}
	case v.Cmp(big.NewRat(1, 2)) == 0:
		return p.squareRoot()
	}
	return atom("(" + p.String() + ")^(" + e.String() + ")")
}

// squareRoot returns the exact root of numbers, and a name for all else.
func (p polynomial) squareRoot() polynomial {
	if p == nil {
		return nil
	}
	v, ok := p.number()
	if !ok {
		return atom("√(" + p.String() + ")")
	}
	n := new(big.Int).Mul(v.Num(), v.Denom())
	imaginary := n.Sign() < 0
	n.Abs(n)
	out := term{new(big.Rat).SetFrac(big.NewInt(1), v.Denom()), 1, map[string]int{}}
	if whole := new(big.Int).Sqrt(n); new(big.Int).Mul(whole, whole).Cmp(n) == 0 {
		out.coef.Mul(out.coef, new(big.Rat).SetInt(whole))
	} else if n.IsInt64() && n.Int64() <= maxRoot {
		free, square := n.Int64(), int64(1)
		for d := int64(2); d*d <= free; d++ {
			for free%(d*d) == 0 {
				free, square = free/(d*d), square*d
			}
		}
		out.root = free
		out.coef.Mul(out.coef, big.NewRat(square, 1))
	} else {
		return atom("√(" + p.String() + ")")
	}
	if imaginary {
		out.atoms["i"] = 1
	}
	return sum(out)
}

// String returns the same for equal polynomials.
func (p polynomial) String() string {
	parts := make([]string, 0, len(p))
	for _, key := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, p[key].coef.RatString()+key)
	}
	return strings.Join(parts, "+")
}
