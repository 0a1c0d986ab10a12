package jinja

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// stringMethods are Python's methods of str. The receiver's size is charged
// before they run, their results by themselves where those can be larger.
var stringMethods = map[string]func(r *resources, s string, a args) (any, error){
	"strip":      stripper(strings.TrimFunc, strings.Trim),
	"lstrip":     stripper(strings.TrimLeftFunc, strings.TrimLeft),
	"rstrip":     stripper(strings.TrimRightFunc, strings.TrimRight),
	"upper":      mapper(upperCase),
	"lower":      mapper(lowerCase),
	"casefold":   mapper(lowerCase),
	"capitalize": mapper(capitalize),
	"title":      mapper(titleCase),
	"swapcase":   mapper(swapCase),
	"isdigit":    predicate(unicode.IsDigit),
	"isdecimal":  predicate(unicode.IsDigit),
	"isnumeric":  predicate(unicode.IsNumber),
	"isalpha":    predicate(unicode.IsLetter),
	"isspace":    predicate(unicode.IsSpace),
	"isalnum":    predicate(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
	"isupper":    func(r *resources, s string, _ args) (any, error) { return isCase(r, s, true) },
	"islower":    func(r *resources, s string, _ args) (any, error) { return isCase(r, s, false) },
	"startswith": affix(strings.HasPrefix),
	"endswith":   affix(strings.HasSuffix),
	"split":      func(r *resources, s string, a args) (any, error) { return splitText(r, s, a, false) },
	"rsplit":     func(r *resources, s string, a args) (any, error) { return splitText(r, s, a, true) },
	"splitlines": splitLines,
	"partition":  func(_ *resources, s string, a args) (any, error) { return partition(s, a, strings.Index, false) },
	"rpartition": func(_ *resources, s string, a args) (any, error) { return partition(s, a, strings.LastIndex, true) },
	"find":       finder(strings.Index, false),
	"rfind":      finder(strings.LastIndex, false),
	"index":      finder(strings.Index, true),
	"rindex":     finder(strings.LastIndex, true),
	"count": func(_ *resources, s string, a args) (any, error) {
		sub, err := a.str(0, "sub")
		return int64(strings.Count(s, sub)), err
	},
	"replace": replaceText,
	"join": func(r *resources, s string, a args) (any, error) {
		return joinItems(r, a.get(0, "", nil), s)
	},
	"format":       braceFormat,
	"removeprefix": remover(strings.TrimPrefix),
	"removesuffix": remover(strings.TrimSuffix),
	"ljust":        padder(func(n int) (left, right int) { return 0, n }),
	"rjust":        padder(func(n int) (left, right int) { return n, 0 }),
	"center":       padder(func(n int) (left, right int) { return n / 2, n - n/2 }),
	"zfill": func(r *resources, s string, a args) (any, error) {
		n, err := integer(a.get(0, "width", nil))
		if err != nil {
			return nil, err
		}
		if err := r.charge(len(s) + maxWidth); err != nil {
			return nil, err
		}
		zeros := min(n, maxWidth) - utf8.RuneCountInString(s)
		if zeros <= 0 {
			return s, nil
		}
		if s != "" && (s[0] == '-' || s[0] == '+') {
			return s[:1] + strings.Repeat("0", zeros) + s[1:], nil
		}
		return strings.Repeat("0", zeros) + s, nil
	},
}

type stringMethod = func(r *resources, s string, a args) (any, error)

// mapper makes a method of a function whose result is at most a few times as long as
// its argument.
func mapper(f func(string) string) stringMethod {
	return func(r *resources, s string, _ args) (any, error) {
		if err := r.chargeTimes(len(s), 16); err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func predicate(ok func(rune) bool) stringMethod {
	return func(_ *resources, s string, _ args) (any, error) {
		return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !ok(c) }), nil
	}
}

// isSpace tells what Python's strip takes off.
func isSpace(c rune) bool { return unicode.IsSpace(c) || 0x1C <= c && c <= 0x1F }

func stripper(space func(string, func(rune) bool) string, chars func(string, string) string) stringMethod {
	return func(r *resources, s string, a args) (any, error) {
		if a.get(0, "chars", nil) == nil {
			return space(s, isSpace), nil
		}
		cut, err := a.str(0, "chars")
		if err != nil {
			return nil, err
		}
		if len(cut) > maxWidth {
			return nil, fmt.Errorf("more than %d characters to strip", maxWidth)
		}
		if err := r.chargeTimes(len(s), len(cut)); err != nil {
			return nil, err
		}
		return chars(s, cut), nil
	}
}

func affix(has func(s, affix string) bool) stringMethod {
	return func(r *resources, s string, a args) (any, error) {
		if t, ok := a.get(0, "", nil).(*List); ok && t.Tuple {
			for _, item := range t.Items {
				if err := r.step(); err != nil {
					return nil, err
				}
				if err := r.key(item); err != nil {
					return nil, err
				}
				if x, ok := item.(string); ok && has(s, x) {
					return true, nil
				}
			}
			return false, nil
		}
		x, err := a.str(0, "")
		return err == nil && has(s, x), err
	}
}

func remover(trim func(s, affix string) string) stringMethod {
	return func(_ *resources, s string, a args) (any, error) {
		x, err := a.str(0, "")
		return trim(s, x), err
	}
}

func padder(share func(n int) (left, right int)) stringMethod {
	return func(r *resources, s string, a args) (any, error) {
		n, err := integer(a.get(0, "width", int64(80)))
		if err != nil {
			return nil, err
		}
		if err := r.charge(len(s) + maxWidth); err != nil {
			return nil, err
		}
		left, right := share(max(0, min(n, maxWidth)-utf8.RuneCountInString(s)))
		return strings.Repeat(" ", left) + s + strings.Repeat(" ", right), nil
	}
}

func finder(index func(s, sub string) int, must bool) stringMethod {
	return func(_ *resources, s string, a args) (any, error) {
		sub, err := a.str(0, "sub")
		if err != nil {
			return nil, err
		}
		i := index(s, sub)
		if i < 0 {
			if must {
				return nil, fmt.Errorf("substring not found")
			}
			return int64(-1), nil
		}
		return int64(utf8.RuneCountInString(s[:i])), nil
	}
}

// partition returns the text before, the separator and the text after.
func partition(s string, a args, index func(s, sub string) int, last bool) (any, error) {
	sep, err := a.str(0, "sep")
	if err != nil {
		return nil, err
	}
	if sep == "" {
		return nil, fmt.Errorf("empty separator")
	}
	parts := []any{s, "", ""}
	if i := index(s, sep); i >= 0 {
		parts = []any{s[:i], sep, s[i+len(sep):]}
	} else if last {
		parts = []any{"", "", s}
	}
	return &List{Items: parts, Tuple: true}, nil
}

// splitText returns Python's split and, from the right, rsplit.
func splitText(r *resources, s string, a args, right bool) (any, error) {
	limit, err := integer(a.get(1, "maxsplit", int64(-1)))
	if err != nil {
		return nil, err
	}
	if err := r.chargeTimes(len(s), itemBytes); err != nil {
		return nil, err
	}
	if a.get(0, "sep", nil) == nil {
		return stringsList(splitSpace(s, limit, right)), nil
	}
	sep, err := a.str(0, "sep")
	if err != nil {
		return nil, err
	}
	if sep == "" {
		return nil, fmt.Errorf("empty separator")
	}
	if limit < 0 {
		return stringsList(strings.Split(s, sep)), nil
	}
	if !right {
		return stringsList(strings.SplitN(s, sep, min(limit, len(s))+1)), nil
	}
	all := strings.Split(s, sep)
	if extra := len(all) - limit - 1; extra > 0 {
		all = append([]string{strings.Join(all[:extra+1], sep)}, all[extra+1:]...)
	}
	return stringsList(all), nil
}

// splitSpace splits at runs of white space, at most limit times.
func splitSpace(s string, limit int, right bool) (out []string) {
	if limit < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	for range limit {
		var field string
		if right {
			s = strings.TrimRightFunc(s, isSpace)
			i := strings.LastIndexFunc(s, isSpace)
			if i < 0 {
				break
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			s, field = s[:i], s[i+n:]
			out = append(out, field)
			continue
		}
		s = strings.TrimLeftFunc(s, isSpace)
		i := strings.IndexFunc(s, isSpace)
		if i < 0 {
			break
		}
		field, s = s[:i], s[i:]
		out = append(out, field)
	}
	if right {
		if s = strings.TrimRightFunc(s, isSpace); s != "" {
			out = append(out, s)
		}
		slices.Reverse(out)
		return out
	}
	if s = strings.TrimLeftFunc(s, isSpace); s != "" {
		out = append(out, s)
	}
	return out
}

func splitLines(r *resources, s string, a args) (any, error) {
	if err := r.chargeTimes(len(s), itemBytes); err != nil {
		return nil, err
	}
	keep := truth(a.get(0, "keepends", false))
	var out []string
	for s != "" {
		n := strings.IndexAny(s, "\r\n\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		if n < 0 {
			out = append(out, s)
			break
		}
		_, size := utf8.DecodeRuneInString(s[n:])
		if strings.HasPrefix(s[n:], "\r\n") {
			size = 2
		}
		if keep {
			out = append(out, s[:n+size])
		} else {
			out = append(out, s[:n])
		}
		s = s[n+size:]
	}
	return stringsList(out), nil
}

func stringsList(parts []string) *List {
	l := &List{Items: make([]any, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l
}

// replaceText charges the result's size before it is made.
func replaceText(r *resources, s string, a args) (any, error) {
	from, err := a.str(0, "old")
	if err != nil {
		return nil, err
	}
	to, err := a.str(1, "new")
	if err != nil {
		return nil, err
	}
	limit := -1
	if v := a.get(2, "count", nil); v != nil {
		if limit, err = integer(v); err != nil {
			return nil, err
		}
	}
	if err := r.chargeTimes(len(s), 4); err != nil { // to count, to find, to copy
		return nil, err
	}
	n := strings.Count(s, from)
	if limit >= 0 {
		n = min(n, limit)
	}
	if err := r.chargeTimes(n, len(to)); err != nil {
		return nil, err
	}
	return strings.Replace(s, from, to, limit), nil
}

// upperCase and lowerCase follow Unicode's special cases, as Python does: ß
// becomes SS.
func upperCase(s string) string { return cases.Upper(language.Und).String(s) }
func lowerCase(s string) string { return cases.Lower(language.Und).String(s) }

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(c)) + lowerCase(s[n:])
}

func titleCase(s string) string {
	inWord := false
	return strings.Map(func(c rune) rune {
		first := !inWord
		inWord = unicode.IsLetter(c)
		if first {
			return unicode.ToTitle(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func swapCase(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
}

// isCase reports whether s has letters and all are upper, or lower, case.
func isCase(r *resources, s string, upper bool) (bool, error) {
	if err := r.chargeTimes(len(s), 16); err != nil {
		return false, err
	}
	return s != strings.Map(swap(!upper), s) == (s != "") && s == strings.Map(swap(upper), s) && strings.ContainsFunc(s, unicode.IsLetter), nil
}

func swap(upper bool) func(rune) rune {
	if upper {
		return unicode.ToUpper
	}
	return unicode.ToLower
}
