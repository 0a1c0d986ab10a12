package answer

import (
	"math/big"
	"regexp"
	"strings"
)

// The bounds of an expression that is read; longer ones are compared as text.
const (
	maxExpression = 200 // bytes
	maxNesting    = 24
)

var (
	commands = regexp.MustCompile(`\\[A-Za-z]+`)
	words    = regexp.MustCompile(`[A-Za-z]{3,}`)
	pairs    = regexp.MustCompile(`[A-Za-z]{2}`)
)

// expression reads a formula as its normal form; nil: it is none that is understood.
// Words are none, so that "no" is not n·o.
func expression(s string) polynomial {
	rest := commands.ReplaceAllString(s, "")
	if len(s) > maxExpression || words.MatchString(rest) || pairs.MatchString(rest) && !strings.ContainsAny(s, `0123456789+-*/^\`) {
		return nil
	}
	p := &parser{rest: s}
	out := p.sum()
	if p.failed || strings.TrimSpace(p.rest) != "" {
		return nil
	}
	return out
}

// parser reads an expression from its beginning. After a failure its results mean
// nothing.
type parser struct {
	rest   string
	depth  int
	failed bool
}

func (p *parser) fail() polynomial {
	p.failed = true
	p.rest = ""
	return nil
}

// next tells whether the rest begins with a text, and takes it.
func (p *parser) next(text string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	if !strings.HasPrefix(p.rest, text) {
		return false
	}
	p.rest = p.rest[len(text):]
	return true
}

// peek returns the first byte of the rest, 0 at its end.
func (p *parser) peek() byte {
	if p.rest = strings.TrimLeft(p.rest, " "); p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// within reads what stands in brackets, of which the first has been taken.
func (p *parser) within(end string) polynomial {
	out := p.sum()
	if !p.next(end) {
		return p.fail()
	}
	return out
}

func (p *parser) sum() polynomial {
	if p.depth++; p.depth > maxNesting {
		return p.fail()
	}
	defer func() { p.depth-- }()
	out := polynomial{}
	for first := true; ; first = false {
		negative := false
		switch {
		case p.next("-"):
			negative = true
		case p.next("+"):
		case !first:
			return out
		}
		product := p.product()
		if negative {
			product = product.negated()
		}
		if out = out.plus(product); out == nil || p.failed {
			return p.fail()
		}
	}
}

func (p *parser) product() polynomial {
	out := p.factor()
	for !p.failed {
		switch {
		case p.next(`\times`), p.next("*"):
			out = out.times(p.signed())
		case p.next("/"), p.next(`\div`):
			out = out.times(p.signed().inverse())
		case p.begins():
			out = out.times(p.factor())
		default:
			return out
		}
		if out == nil {
			return p.fail()
		}
	}
	return nil
}

// signed returns a factor that may have a sign.
func (p *parser) signed() polynomial {
	if p.next("-") {
		return p.factor().negated()
	}
	return p.factor()
}

// begins tells whether a factor begins here.
func (p *parser) begins() bool {
	c := p.peek()
	return isLetter(c) || isDigit(c) || c == '.' || c == '(' || c == '[' || c == '{' ||
		c == '\\' && len(p.rest) > 1 && isLetter(p.rest[1])
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// factor returns something with its power.
func (p *parser) factor() polynomial {
	out := p.base()
	for !p.failed && p.next("^") {
		out = out.power(p.argument(false))
	}
	if out == nil {
		return p.fail()
	}
	return out
}

func (p *parser) base() polynomial {
	switch c := p.peek(); {
	case p.next("("):
		return p.within(")")
	case p.next("["):
		return p.within("]")
	case p.next("{"):
		return p.within("}")
	case isDigit(c) || c == '.':
		return p.number(false)
	case isLetter(c):
		p.rest = p.rest[1:]
		return p.named(strings.ToLower(string(c)))
	case c == '\\':
		return p.command()
	}
	return p.fail()
}

// named returns a variable with its index, if it has one.
func (p *parser) named(name string) polynomial {
	if !p.next("_") {
		return atom(name)
	}
	index, ok := "", false
	if index, ok = braced(p.rest); ok {
		p.rest = p.rest[len(index)+2:]
	} else if p.peek() != 0 {
		index, p.rest = p.rest[:1], p.rest[1:]
	}
	if index = strings.ReplaceAll(index, " ", ""); index == "" {
		return p.fail()
	}
	return atom(name + "_" + strings.ToLower(index))
}

var digits = regexp.MustCompile(`^(?:\d+\.?\d*|\.\d+)`)

// number reads digits with a point; single: one digit, as arguments of commands are.
// With an index it is the name of a number in another base.
func (p *parser) number(single bool) polynomial {
	s := digits.FindString(p.rest)
	if single {
		s = p.rest[:1]
	}
	if s == "" || len(s) > maxDigits {
		return p.fail()
	}
	p.rest = p.rest[len(s):]
	if strings.HasPrefix(p.rest, "_") {
		return p.named(s)
	}
	v, ok := decimal(s)
	if !ok {
		return p.fail()
	}
	return constant(v)
}

// argument returns what a command or a power applies to: something in braces, or one
// digit, letter or command. Of a whole argument the digits go together.
func (p *parser) argument(whole bool) polynomial {
	c := p.peek()
	switch {
	case p.next("{"):
		return p.within("}")
	case isDigit(c):
		return p.number(!whole)
	case whole && p.next("("):
		return p.within(")")
	case c == '-' && !whole:
		return p.signed()
	case isLetter(c):
		p.rest = p.rest[1:]
		return atom(strings.ToLower(string(c)))
	case c == '\\':
		return p.command()
	}
	return p.fail()
}

// functions are names before their arguments.
var functions = map[string]bool{"sin": true, "cos": true, "tan": true, "cot": true, "sec": true, "csc": true, "log": true, "ln": true, "exp": true,
	"arcsin": true, "arccos": true, "arctan": true}

// symbols are commands that stand for themselves.
var symbols = map[string]bool{"pi": true, "infty": true, "alpha": true, "beta": true, "gamma": true, "delta": true, "theta": true, "phi": true,
	"varphi": true, "lambda": true, "mu": true, "omega": true, "sigma": true, "rho": true, "epsilon": true, "tau": true}

func (p *parser) command() polynomial {
	if p.depth++; p.depth > maxNesting {
		return p.fail()
	}
	defer func() { p.depth-- }()
	name := commands.FindString(p.rest)
	if name == "" {
		return p.fail()
	}
	p.rest = p.rest[len(name):]
	switch name = name[1:]; {
	case name == "frac":
		above := p.argument(false)
		below := p.argument(false)
		if p.failed {
			return nil
		}
		return above.times(below.inverse())
	case name == "sqrt":
		return p.root()
	case name == "binom":
		return p.binomial()
	case symbols[name]:
		return p.named(name)
	case functions[name]:
		return p.function(name)
	}
	return p.fail()
}

func (p *parser) root() polynomial {
	degree := constant(big.NewRat(2, 1))
	if p.next("[") {
		degree = p.within("]")
	}
	of := p.argument(true)
	if p.failed || of == nil {
		return p.fail()
	}
	n, ok := degree.number()
	if ok && n.Cmp(big.NewRat(2, 1)) == 0 {
		return of.squareRoot()
	}
	if v, isNumber := of.number(); ok && isNumber && n.Cmp(big.NewRat(3, 1)) == 0 && v.IsInt() && v.Num().IsInt64() {
		for r := int64(0); r <= 1000; r++ { // a cube, perhaps
			if cube := r * r * r; cube == v.Num().Int64() {
				return constant(big.NewRat(r, 1))
			}
		}
	}
	return atom("√[" + degree.String() + "](" + of.String() + ")")
}

// binomial returns the number of ways to choose.
func (p *parser) binomial() polynomial {
	a, b := p.argument(false), p.argument(false)
	if p.failed {
		return nil
	}
	n, ok1 := a.number()
	k, ok2 := b.number()
	if !ok1 || !ok2 || !n.IsInt() || !k.IsInt() || n.Sign() < 0 || k.Sign() < 0 || n.Cmp(big.NewRat(maxDigits, 1)) > 0 || k.Cmp(n) > 0 {
		return p.fail()
	}
	return constant(new(big.Rat).SetInt(new(big.Int).Binomial(n.Num().Int64(), k.Num().Int64())))
}

// function returns a function with its argument: the factors up to the next sign or
// function.
func (p *parser) function(name string) polynomial {
	if p.next("_") {
		name += "_" + p.argument(false).String()
	}
	exponent := constant(big.NewRat(1, 1))
	if p.next("^") {
		exponent = p.argument(false)
	}
	of := p.factor()
	for !p.failed && p.begins() && !functions[strings.TrimPrefix(commands.FindString(p.rest), `\`)] {
		of = of.times(p.factor())
	}
	if p.failed || of == nil {
		return p.fail()
	}
	return atom(name + "(" + of.String() + ")").power(exponent)
}
