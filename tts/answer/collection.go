package answer

import (
	"regexp"
	"slices"
	"strings"
)

// maxItems bounds the parts of a list.
const maxItems = 64

var (
	conjunction = regexp.MustCompile(`\s+(?:and|or)\s+`)
	environment = regexp.MustCompile(`^\\begin\s*\{[pbvBV]?matrix\}(.*)\\end\s*\{[pbvBV]?matrix\}$`)
	comparison  = regexp.MustCompile(`\\le\b|\\ge\b|<|>|=`)
)

// collection returns the key of several answers in one: tuples and intervals with their
// brackets, matrices and unions, and lists and sets, in which order means nothing.
func collection(s string, levels int) (string, bool) {
	if m := environment.FindStringSubmatch(s); m != nil {
		return matrix(m[1], levels)
	}
	if parts := split(s, "∪"); len(parts) > 1 {
		return unordered("∪", parts, levels)
	}
	if inner, ok := strings.CutPrefix(s, `\{`); ok {
		if inner, ok = strings.CutSuffix(inner, `\}`); ok {
			return unordered(",", split(inner, ","), levels)
		}
	}
	if key, ok := tuple(s, levels); ok {
		return key, true
	}
	list := split(conjunction.ReplaceAllString(s, ","), ",")
	if len(list) == 1 {
		list = bothSigns(s)
	}
	if len(list) == 1 {
		return "", false
	}
	list = slices.DeleteFunc(list, func(part string) bool { return strings.TrimSpace(part) == "" })
	return unordered(",", list, levels)
}

// split divides s where a separator is in no brackets.
func split(s, at string) []string {
	var parts []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if depth == 0 && strings.HasPrefix(s[i:], at) {
			parts = append(parts, s[from:i])
			from = i + len(at)
			i = from - 1
		}
	}
	return append(parts, s[from:])
}

// balanced tells whether no bracket closes that has not been opened: the outer
// ones of "(1,2),(3,4)" are not a pair.
func balanced(s string) bool {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return true
}

// bothSigns makes two of an answer with ±.
func bothSigns(s string) []string {
	s = strings.ReplaceAll(s, "±", `\pm`)
	if strings.Count(s, `\pm`) != 1 {
		return []string{s}
	}
	return []string{strings.Replace(s, `\pm`, "+", 1), strings.Replace(s, `\pm`, "-", 1)}
}

// unordered returns the key of parts in any order. Parts that are words make it a text.
func unordered(mark string, parts []string, levels int) (string, bool) {
	keys, ok := keysOf(parts, levels)
	if !ok {
		return "", false
	}
	slices.Sort(keys)
	return "{" + strings.Join(slices.Compact(keys), mark) + "}", true
}

// keysOf returns the keys of parts that are all values, tuples, letters or relations.
func keysOf(parts []string, levels int) ([]string, bool) {
	if len(parts) > maxItems {
		return nil, false
	}
	var keys []string
	for _, part := range parts {
		key := partKey(part, levels)
		if key == "" || !strings.ContainsRune("#=<([{", rune(key[0])) && len(key) > 1 {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, len(keys) > 0
}

// tuple gives the key of a list in brackets: "(0.50, 1/2)" is "(#1/2,#1/2)".
func tuple(s string, levels int) (string, bool) {
	if len(s) < 2 || !strings.ContainsRune("([", rune(s[0])) || !strings.ContainsRune(")]", rune(s[len(s)-1])) {
		return "", false
	}
	parts := split(s[1:len(s)-1], ",")
	if len(parts) < 2 || len(parts) > maxItems || !balanced(s[1:len(s)-1]) {
		return "", false
	}
	for i, p := range parts {
		parts[i] = partKey(p, levels)
	}
	return s[:1] + strings.Join(parts, ",") + s[len(s)-1:], true
}

// matrix returns the key of rows of entries.
func matrix(s string, levels int) (string, bool) {
	var rows []string
	entries := 0
	for row := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(s), `\\`), `\\`) {
		cells := strings.Split(row, "&")
		if entries += len(cells); entries > maxItems {
			return "", false
		}
		for i, c := range cells {
			cells[i] = partKey(c, levels)
		}
		rows = append(rows, strings.Join(cells, ","))
	}
	return "[[" + strings.Join(rows, ";") + "]]", true
}

// relation returns the key of an equation or inequality whose sides are formulas. An
// equation is one whatever it is multiplied by and whichever side things are on.
func relation(s string) (string, bool) {
	at := comparison.FindAllStringIndex(s, 4)
	if len(at) == 0 || len(at) > 2 {
		return "", false
	}
	var sides []polynomial
	var signs []string
	from := 0
	for _, m := range append(at, []int{len(s), len(s)}) {
		side := formula(s[from:m[0]])
		if side == nil {
			return "", false
		}
		sides, signs, from = append(sides, side), append(signs, s[m[0]:m[1]]), m[1]
	}
	signs = signs[:len(at)]
	if len(at) == 1 && signs[0] == "=" {
		p := sides[0].plus(sides[1].negated())
		if len(p) == 0 { // always true, or too large
			return "", false
		}
		if p, _ = p.monic(); p == nil {
			return "", false
		}
		return "=0=" + p.String(), true
	}
	if signs[0] == ">" || signs[0] == `\ge` { // read from the other end
		slices.Reverse(sides)
		slices.Reverse(signs)
		for i, sign := range signs {
			signs[i] = map[string]string{">": "<", `\ge`: `\le`, "<": ">", `\le`: `\ge`, "=": "="}[sign]
		}
	}
	key := "<" + sides[0].String()
	for i, sign := range signs {
		key += sign + sides[i+1].String()
	}
	return key, true
}
