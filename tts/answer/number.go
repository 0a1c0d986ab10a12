package answer

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// maxDigits bounds the numbers that are compared by value, so that no answer
// is costly to compute with. Longer ones are compared as text.
const maxDigits = 80

// unit matches text that may follow a number without being part of its value: words after a space, or a
// common unit right after it. It does not match a lone letter such as x.
var unit = regexp.MustCompile(`^(.*\d[^A-Za-z]*?)(?:\s+(?:[A-Za-z]{2,}|[gmlsh])(?:\s+[A-Za-z]+|/[A-Za-z]+|\^\d)*|(?:cm|mm|km|kg|mg|ml|min|hrs?|ft|in|lbs?|mph|[gmlsh])(?:/[a-z]+|\^\d)?)\.?$`)

// quantity returns the value of a number with or without a unit.
func quantity(s string) (*big.Rat, bool) {
	if v, ok := number(s); ok {
		return v, true
	}
	if m := unit.FindStringSubmatch(s); m != nil {
		return number(strings.TrimSpace(m[1]))
	}
	return nil, false
}

var (
	repeated = regexp.MustCompile(`^(\d*)\.(\d{0,20})\\(?:overline|bar)\s*(?:\{(\d{1,20})\}|(\d))$`)
	power    = regexp.MustCompile(`^(.+?)\s*\\times\s*10\s*\^\s*\{?\s*([-+]?\d{1,3})\s*\}?$`)
	fraction = regexp.MustCompile(`^([^\\/]*?)\\frac\s*(?:\{([^{}]+)\}\s*\{([^{}]+)\}|(\d)\s*(\d))$`)
	slashed  = regexp.MustCompile(`^(?:(.*\d)\s+)?([^/\s]+)\s*/\s*([^/\s]+)$`)
)

// number returns the value of a whole string: an integer, a decimal, a fraction, a
// mixed number, any of them in percent, or a decimal times a power of ten.
func number(s string) (*big.Rat, bool) {
	s = strings.TrimSpace(s)
	if len(s) > maxDigits {
		return nil, false
	}
	sign := int64(1)
	switch {
	case strings.HasPrefix(s, "-"):
		sign, s = -1, s[1:]
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	}
	scale := big.NewRat(sign, 1)
	if t, ok := strings.CutSuffix(s, "%"); ok {
		s = strings.TrimSpace(t)
		scale.Quo(scale, big.NewRat(100, 1))
	}
	v, ok := unsigned(strings.TrimSpace(s))
	if !ok {
		return nil, false
	}
	return v.Mul(v, scale), true
}

// unsigned returns the value of a number without sign and percent.
func unsigned(s string) (*big.Rat, bool) {
	if m := power.FindStringSubmatch(s); m != nil {
		v, ok := decimal(m[1])
		if !ok {
			return nil, false
		}
		return times10(v, m[2])
	}
	if m := repeated.FindStringSubmatch(s); m != nil {
		return repeating(m[1], m[2], m[3]+m[4])
	}
	whole, above, below := "", "", ""
	if m := fraction.FindStringSubmatch(s); m != nil {
		whole, above, below = strings.TrimSpace(m[1]), m[2]+m[4], m[3]+m[5]
	} else if m := slashed.FindStringSubmatch(s); m != nil {
		whole, above, below = m[1], m[2], m[3]
	} else {
		return decimal(s)
	}
	a, ok := decimal(strings.TrimSpace(above))
	if !ok {
		return nil, false
	}
	b, ok := decimal(strings.TrimSpace(below))
	if !ok || b.Sign() == 0 {
		return nil, false
	}
	a.Quo(a, b)
	if whole != "" {
		w, ok := decimal(whole)
		if !ok || !w.IsInt() {
			return nil, false
		}
		a.Add(a, w)
	}
	return a, true
}

// repeating returns whole.once followed by again for ever: 0.1666... is 0.1 and 6.
func repeating(whole, once, again string) (*big.Rat, bool) {
	long, ok1 := new(big.Int).SetString("0"+whole+once+again, 10)
	short, ok2 := new(big.Int).SetString("0"+whole+once, 10)
	if !ok1 || !ok2 {
		return nil, false
	}
	below, ok := new(big.Int).SetString(strings.Repeat("9", len(again))+strings.Repeat("0", len(once)), 10)
	return new(big.Rat).SetFrac(long.Sub(long, short), below), ok
}

var (
	grouped = regexp.MustCompile(`^\d{1,3}(?:[, ]\d{3})+(?:\.\d*)?$`)
	plain   = regexp.MustCompile(`^(\d*\.?\d*)(?:[eE]([-+]?\d{1,3}))?$`)
	commas  = strings.NewReplacer(",", "", " ", "")
)

// decimal returns the value of digits with or without separators of thousands, a
// point and an exponent.
func decimal(s string) (*big.Rat, bool) {
	if grouped.MatchString(s) {
		s = commas.Replace(s)
	}
	m := plain.FindStringSubmatch(s)
	if m == nil || !strings.ContainsAny(m[1], "0123456789") {
		return nil, false
	}
	digits := m[1]
	if digits[0] == '.' {
		digits = "0" + digits
	}
	v, ok := new(big.Rat).SetString(strings.TrimSuffix(digits, "."))
	if !ok {
		return nil, false
	}
	if m[2] == "" {
		return v, true
	}
	return times10(v, m[2])
}

// times10 multiplies v by a power of ten.
func times10(v *big.Rat, exponent string) (*big.Rat, bool) {
	e, err := strconv.Atoi(exponent)
	if err != nil || e > maxDigits || e < -maxDigits {
		return nil, false
	}
	p := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(e, -e))), nil))
	if e < 0 {
		return v.Quo(v, p), true
	}
	return v.Mul(v, p), true
}
