package answer

import (
	"regexp"
	"strings"
	"unicode"
)

// textKey ignores case, white space and outer punctuation.
func textKey(s string) string {
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
}

// latex removes what does not change a value and gives the rest one spelling.
var latex = strings.NewReplacer(
	`\\`, `\\`, // ends a row of a matrix
	`\left`, "", `\right`, "", `\bigl`, "", `\bigr`, "", `\displaystyle`, "", `\!`, "", `\,`, "", `\;`, "", `\:`, "", `\ `, " ", `\quad`, " ", `~`, " ",
	`\dfrac`, `\frac`, `\tfrac`, `\frac`, `\cfrac`, `\frac`, `\dbinom`, `\binom`, `\tbinom`, `\binom`,
	`\$`, "", `\%`, "%", `{,}`, ",", `^{\circ}`, "", `^\circ`, "", `\degree`, "", `°`, "",
	`\cdot`, `\times`, `×`, `\times`, `·`, `\times`, `−`, "-", `–`, "-",
	`\leqslant`, `\le`, `\geqslant`, `\ge`, `\leq`, `\le`, `\geq`, `\ge`, `≤`, `\le`, `≥`, `\ge`, `\lt`, "<", `\gt`, ">",
	`\cup`, `∪`, `√`, `\sqrt `, `π`, `\pi `, `∞`, `\infty `, `\lbrace`, `\{`, `\rbrace`, `\}`,
	`\(`, "", `\)`, "", `\[`, "", `\]`, "", `**`, "", `$`, "", `€`, "", `£`, "",
	"\u00a0", " ", "\u2009", " ", "\u202f", " ",
)

var (
	command  = regexp.MustCompile(`\\(?:text|textrm|textit|mathrm|textbf|mathbf|mathit|mbox|operatorname)\s*\{([^{}]*)\}`)
	measure  = regexp.MustCompile(`^(.*[^\s,])\s*\\(?:text|textrm|mathrm|mbox)\s*\{([^{}]*)\}(?:\^\{?\d\}?)?$`)
	equation = regexp.MustCompile(`^(?:[A-Za-z](?:_?\w|_\{\w+\})?\s*(?:=|\\in\b)|[A-Za-z]\([A-Za-z]\)\s*=)\s*`)
	single   = regexp.MustCompile(`^\(?([A-Za-z])\)?$`)
	asWords  = regexp.MustCompile(`(^|[^\\A-Za-z])(sqrt|pi|infinity|infty)\b`)
)

// maxMath bounds what is read as mathematics, in bytes.
const maxMath = 1000

// mathKey returns "#" and the value for numbers, "=" and the normal form for formulas of a few terms, such a
// key for each part of lists, else the text in one spelling.
func mathKey(s string) string {
	if len(s) > maxMath {
		return spelling(s)
	}
	s = latex.Replace(s)
	// What follows a number or a formula as text is its unit.
	if m := measure.FindStringSubmatch(s); m != nil && strings.ContainsAny(m[1], `0123456789\`) && isUnit(m[2]) {
		if key, ok := valueKey(clean(m[1])); ok {
			return key
		}
	}
	return partKey(command.ReplaceAllString(s, " $1"), 2)
}

// isUnit tells whether a text after a value adds nothing to it.
func isUnit(text string) bool {
	switch strings.ToLower(strings.Trim(strings.ReplaceAll(text, ".", ""), " ")) {
	case "and", "or", "am", "pm":
		return false
	}
	return true
}

// clean takes off what may stand around an answer, the sign of a number or a heading too.
func clean(s string) string {
	s = strings.TrimSpace(strings.Trim(strings.TrimSpace(s), "`'\"“”"))
	return strings.TrimLeft(strings.TrimRight(s, ".,;: "), "# ")
}

// partKey returns the key of an answer, or of a part of one with depth levels within.
func partKey(s string, depth int) string {
	s = equation.ReplaceAllString(clean(s), "")
	if v, ok := quantity(s); ok {
		return "#" + v.RatString()
	}
	if m := single.FindStringSubmatch(s); m != nil { // a choice: "(B)" is "b"
		return strings.ToLower(m[1])
	}
	if depth > 0 {
		if key, ok := collection(s, depth-1); ok {
			return key
		}
	}
	if key, ok := valueKey(s); ok {
		return key
	}
	if key, ok := relation(s); ok {
		return key
	}
	return spelling(s)
}

// valueKey returns the key of a number or a formula.
func valueKey(s string) (string, bool) {
	s = equation.ReplaceAllString(s, "")
	if v, ok := quantity(s); ok {
		return "#" + v.RatString(), true
	}
	p := formula(s)
	if p == nil {
		return "", false
	}
	return formulaKey(p), true
}

// formula returns expression for what people write besides LaTeX too.
func formula(s string) polynomial {
	s = asWords.ReplaceAllStringFunc(s, func(w string) string {
		at := strings.IndexAny(w, "spi")
		name := w[at:]
		if name == "infinity" {
			name = "infty"
		}
		return w[:at] + `\` + name
	})
	return expression(s)
}

// formulaKey returns a number's key for numbers, and a letter for a letter.
func formulaKey(p polynomial) string {
	if v, ok := p.number(); ok {
		return "#" + v.RatString()
	}
	if key := p.String(); len(p) == 1 {
		if name, ok := strings.CutPrefix(key, "1·"); ok {
			if name, ok = strings.CutSuffix(name, "^1"); ok && len(name) == 1 {
				return name
			}
		}
	}
	return "=" + p.String()
}

// spelling returns an answer as text: without white space between signs, and braces
// around single ones, and not with the first sign of a value's key or a formula's.
func spelling(s string) string {
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	s = braces.ReplaceAllString(s, "$1")
	return strings.TrimLeft(signs.ReplaceAllString(s, "$1"), "#=")
}

var (
	braces = regexp.MustCompile(`\{(\w)\}`)
	signs  = regexp.MustCompile(`\s*([-+*/=<>^_,;:(){}\[\]|\\∪])\s*`)
)
