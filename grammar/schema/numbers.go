package schema

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// comparison bounds numbers.
type comparison struct {
	relation relation
	to       *big.Rat
}

// relation says how a number stands to another.
type relation uint8

const (
	less relation = iota
	atMost
	unequal
	atLeast
	greater
)

// opposite returns the relation of all other numbers.
func (r relation) opposite() relation {
	return [...]relation{less: atLeast, atMost: greater, atLeast: less, greater: atMost}[r]
}

func (c *comparison) holds(n *big.Rat) bool {
	order := n.Cmp(c.to)
	switch c.relation {
	case less:
		return order < 0
	case atMost:
		return order <= 0
	case unequal:
		return order != 0
	case atLeast:
		return order >= 0
	}
	return order > 0
}

// admitsNumber reports whether a number meets what s demands of numbers.
func (s *shape) admitsNumber(n *big.Rat) bool {
	if s.integer && !n.IsInt() {
		return false
	}
	for _, b := range s.bounds {
		if !b.holds(n) {
			return false
		}
	}
	multiple := func(of *big.Rat) bool { return new(big.Rat).Quo(n, of).IsInt() }
	return !slices.ContainsFunc(s.multiples, func(of *big.Rat) bool { return !multiple(of) }) && !slices.ContainsFunc(s.others, multiple)
}

// mayHaveNumber reports false if it is plain that no number meets what s demands.
func (s *shape) mayHaveNumber() bool {
	if s.integer && slices.ContainsFunc(s.others, func(of *big.Rat) bool { return of.Num().IsInt64() && of.Num().Int64() == 1 }) {
		return false
	}
	lo, hi := s.limits()
	if lo == nil || hi == nil {
		return true
	}
	order := lo.to.Cmp(hi.to)
	return order < 0 || order == 0 && lo.relation == atLeast && hi.relation == atMost
}

// limits returns the narrowest bounds from below and above, nil where there are none.
func (s *shape) limits() (lo, hi *comparison) {
	for i := range s.bounds {
		b := &s.bounds[i]
		switch {
		case b.relation >= atLeast && (lo == nil || b.to.Cmp(lo.to) > 0 || b.to.Cmp(lo.to) == 0 && b.relation == greater):
			lo = b
		case b.relation <= atMost && (hi == nil || b.to.Cmp(hi.to) < 0 || b.to.Cmp(hi.to) == 0 && b.relation == less):
			hi = b
		}
	}
	return lo, hi
}

// interval is the numbers between two and these, nil for no bound.
type interval struct{ least, most *big.Rat }

// mostHoles bounds the numbers that are ruled out one by one.
const mostHoles = 256

// intervals returns those in which numbers meet the bounds of s. Those that they exclude are
// left out with what readers take for the same: numbers are read as float64s.
func (s *shape) intervals() ([]interval, error) {
	all := interval{}
	lo, hi := s.limits()
	if lo != nil {
		if all.least = lo.to; lo.relation == greater {
			if all.least = neighbour(lo.to, 1); all.least == nil {
				return nil, nil
			}
		}
	}
	if hi != nil {
		if all.most = hi.to; hi.relation == less {
			if all.most = neighbour(hi.to, -1); all.most == nil {
				return nil, nil
			}
		}
	}
	var holes []*big.Rat
	for _, b := range s.bounds {
		if b.relation == unequal {
			holes = append(holes, b.to)
		}
	}
	slices.SortFunc(holes, (*big.Rat).Cmp)
	holes = slices.CompactFunc(holes, func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
	if len(holes) > mostHoles {
		return nil, fmt.Errorf("not: more than %d numbers that are ruled out are not supported", mostHoles)
	}
	out := []interval{all}
	for _, hole := range holes { // of the last interval, since they ascend
		last := &out[len(out)-1]
		if last.least != nil && hole.Cmp(last.least) < 0 || last.most != nil && hole.Cmp(last.most) > 0 {
			continue
		}
		rest := interval{neighbour(hole, 1), last.most}
		if last.most = neighbour(hole, -1); last.most == nil {
			out = out[:len(out)-1]
		}
		if rest.least != nil {
			out = append(out, rest)
		}
	}
	return out, nil
}

// neighbour returns the next float64 above, or with -1 below a number that is read as one;
// nil: there is none.
func neighbour(n *big.Rat, direction int) *big.Rat {
	f, _ := n.Float64()
	return new(big.Rat).SetFloat64(math.Nextafter(f, math.Inf(direction)))
}

// The numbers that are written where nothing bounds them: enough digits for any use,
// and never more than a float64 holds.
const (
	integerText = `-?(0|[1-9]\d{0,23})`
	numberText  = integerText + `(\.\d{1,24})?([eE][+-]?\d{1,2})?|-?\d(\.\d{1,24})?[eE][+-]?[0-2]\d\d`
)

// number matches the numbers of a shape.
func (c *writing) number(s *shape) (regex.Expr, error) {
	if len(s.bounds)+len(s.multiples)+len(s.others) == 0 {
		if s.integer {
			return c.arena.Match(integerText, regex.Raw)
		}
		return c.arena.Match(numberText, regex.Raw)
	}
	in, err := s.intervals()
	if err != nil {
		return regex.None, err
	}
	var multiple *big.Rat
	for _, m := range s.multiples {
		multiple = common(multiple, m)
	}
	var es []regex.Expr
	for _, i := range in {
		e, err := c.arena.Number(regex.Numbers{Least: i.least, Most: i.most, Multiple: multiple, Others: s.others, Integer: s.integer})
		if err != nil {
			return regex.None, fmt.Errorf("multipleOf: %w", err)
		}
		es = append(es, e)
	}
	return c.arena.Or(es...), nil
}

// common returns the least common multiple of two numbers, of which a may be nil.
func common(a, b *big.Rat) *big.Rat {
	if a == nil {
		return b
	}
	num := new(big.Int).Mul(a.Num(), new(big.Int).Quo(b.Num(), new(big.Int).GCD(nil, nil, a.Num(), b.Num())))
	return new(big.Rat).SetFrac(num, new(big.Int).GCD(nil, nil, a.Denom(), b.Denom()))
}
