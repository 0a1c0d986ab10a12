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
	`\left`, "", `\right`, "", `\!`, "", `\,`, "", `\;`, "", `\:`, "", `\ `, " ", `~`, " ",
	`\dfrac`, `\frac`, `\tfrac`, `\frac`, `\cfrac`, `\frac`,
	`\$`, "", `\%`, "%", `{,}`, ",", `^{\circ}`, "", `^\circ`, "", `°`, "",
	`\cdot`, `\times`, `×`, `\times`, `−`, "-", `–`, "-",
	`\(`, "", `\)`, "", `\[`, "", `\]`, "", `**`, "", `$`, "", `€`, "", `£`, "",
	"\u00a0", " ", "\u2009", " ", "\u202f", " ",
)

var (
	command  = regexp.MustCompile(`\\(?:text|mathrm|textbf|mathbf|mbox)\s*\{([^{}]*)\}`)
	equation = regexp.MustCompile(`^[A-Za-z](?:_?\w)?\s*=\s*`)
	single   = regexp.MustCompile(`^\(?([A-Za-z])\)?$`)
)

// mathKey is "#" and the value for numbers, else the text in one spelling.
func mathKey(s string) string {
	s = latex.Replace(s)
	s = command.ReplaceAllString(s, " $1")
	s = strings.TrimSpace(strings.Trim(strings.TrimSpace(s), "`'\"“”"))
	s = strings.TrimRight(s, ".,;: ")
	s = equation.ReplaceAllString(s, "")
	if v, ok := quantity(s); ok {
		return "#" + v.RatString()
	}
	if m := single.FindStringSubmatch(s); m != nil { // a choice: "(B)" is "b"
		return strings.ToLower(m[1])
	}
	if key, ok := tuple(s); ok {
		return key
	}
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// tuple gives the key of a list in brackets: "(0.50, 1/2)" is "(#1/2,#1/2)".
func tuple(s string) (string, bool) {
	if len(s) < 2 || !strings.ContainsRune("([", rune(s[0])) || !strings.ContainsRune(")]", rune(s[len(s)-1])) {
		return "", false
	}
	inner := s[1 : len(s)-1]
	if !strings.Contains(inner, ",") || strings.ContainsAny(inner, "()[]{}") {
		return "", false
	}
	parts := strings.Split(inner, ",")
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if v, ok := number(p); ok {
			p = "#" + v.RatString()
		}
		parts[i] = strings.ToLower(p)
	}
	return s[:1] + strings.Join(parts, ",") + s[len(s)-1:], true
}
