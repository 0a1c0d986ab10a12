package jinja

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// makers are templates of one operation each that makes text or lists, by the
// operation's name: a filter's, or ".method", or another.
// s is 24 KB of letters, words and lines, big 330 KB; xs is a list of 2^15
// numbers, words one of 2^11 strings, pairs one of 2^13 pairs, d a mapping of 2^11
// entries, quotes 30 KB, kb one.
var makers = map[string]string{
	// Operators and expressions.
	"~": `{{ (big ~ big) is none }}`, "~ of a list": `{{ (xs ~ '') is none }}`,
	"+": `{{ (big + big) is none }}`, "+ of lists": `{{ (xs + xs) is none }}`,
	"*": `{{ (s * 20) is none }}`, "* of a list": `{{ (xs * 2) is none }}`, "* from the left": `{{ (20 * s) is none }}`,
	"%": `{{ ('%s' * 20 % ((s,) * 20)) is none }}`, "% padded": `{{ ('%1000d' * 2000 % ((1,) * 2000)) is none }}`,
	"slice": `{{ big[::2] is none }}`, "slice of a list": `{{ xs[1:] is none }}`,
	"literals":         `{% for x in range(20000) %}{% set _ = [1, 2, 3, {1: 2, 3: 4}, x] %}{% endfor %}`,
	"spread arguments": `{% macro f() %}{% endmacro %}{{ f(*xs) }}`,
	"named arguments":  `{% macro f() %}{% endmacro %}{{ f(**d) }}`,
	// Statements.
	"output":            `{{ big }}{{ big }}`,
	"text":              `{% for x in range(20) %}{% for y in range(90) %}` + strings.Repeat("text ", 200) + `{% endfor %}{% endfor %}`,
	"set block":         `{% set x %}{% for i in range(20) %}{{ s }}{% endfor %}{% endset %}`,
	"filter block":      `{% filter upper %}{% for i in range(20) %}{{ s }}{% endfor %}{% endfilter %}`,
	"macro":             `{% macro m() %}{% for i in range(20) %}{{ s }}{% endfor %}{% endmacro %}{{ m() is none }}`,
	"call block":        `{% macro m() %}{% for i in range(20) %}{{ caller() }}{% endfor %}{% endmacro %}{% call m() %}{{ s }}{% endcall %}`,
	"for":               `{% for x in xs %}{% break %}{% endfor %}`,
	"for over text":     `{% for x in s %}{% break %}{% endfor %}`,
	"for with a filter": `{% for x in xs if x %}{% break %}{% endfor %}`,
	"namespaces":        `{% set l = [] %}{% for x in range(3000) %}{% set n = namespace() %}{% set n.a = 1 %}{% set n.b = 1 %}{% set n.c = 1 %}{% set n.d = 1 %}{% set _ = l.append(n) %}{% endfor %}`,
	// Globals.
	"range": `{{ range(100000) is none }}`, "dict": `{{ dict(d) is none }}`, "dict of pairs": `{{ dict(pairs) is none }}`, "namespace": `{{ namespace(d) is none }}`,
	// Filters.
	"capitalize": `{{ (big | capitalize) is none }}`, "title": `{{ (big | title) is none }}`,
	"lower": `{{ (big | lower) is none }}`, "upper": `{{ (big | upper) is none }}`,
	"e": `{{ (quotes | e) is none }}`, "escape": `{{ (quotes | escape) is none }}`,
	"dictsort": `{{ (d | dictsort) is none }}`, "items": `{{ (d | items) is none }}`,
	"first": `{{ (s | first) is none }}`, "last": `{{ (s | last) is none }}`,
	"float": `{{ (big | float) is none }}`, "int": `{{ (big | int) is none }}`,
	"format": `{{ ('%s%s%s%s%s%s%s%s%s%s%s%s' | format(s, s, s, s, s, s, s, s, s, s, s, s)) is none }}`,
	"indent": `{{ (('\n' * 20000) | indent(100, blank=true)) is none }}`,
	"join":   `{{ (words | join(kb)) is none }}`,
	"list":   `{{ (xs | list) is none }}`, "list of characters": `{{ (s | list) is none }}`,
	"map": `{{ (xs | map('abs')) is none }}`, "map of attributes": `{{ (xs | map(attribute='a')) is none }}`,
	"select": `{{ (xs | select('number')) is none }}`, "reject": `{{ (xs | reject('string')) is none }}`,
	"selectattr": `{{ (xs | selectattr('a', 'undefined')) is none }}`, "rejectattr": `{{ (xs | rejectattr('a')) is none }}`,
	"replace": `{{ (s | replace('a', kb)) is none }}`,
	"reverse": `{{ (xs | reverse) is none }}`, "reverse of text": `{{ (s | reverse) is none }}`,
	"sort": `{{ (xs | sort) is none }}`, "sum": `{{ ([xs, xs] | sum(start=[])) is none }}`,
	"string": `{{ (xs | string) is none }}`, "safe": `{{ (xs | safe) is none }}`, "trim": `{{ (xs | trim) is none }}`,
	"tojson": `{{ (xs | tojson) is none }}`, "tojson of text": `{{ (big | tojson) is none }}`,
	"tojson indented": `{{ (words | tojson(indent=kb)) is none }}`, "tojson of keys": `{{ (d | tojson(sort_keys=true)) is none }}`,
	"sort of text": `{{ (([big] * 20) | sort) is none }}`, "string of text": `{{ (([s] * 100) | string) is none }}`, "tojson of a list of text": `{{ (([s] * 100) | tojson) is none }}`,
	// Methods of strings.
	".capitalize": `{{ big.capitalize() is none }}`, ".title": `{{ big.title() is none }}`, ".swapcase": `{{ big.swapcase() is none }}`,
	".lower": `{{ big.lower() is none }}`, ".upper": `{{ big.upper() is none }}`, ".casefold": `{{ big.casefold() is none }}`,
	".split": `{{ s.split() is none }}`, ".split at a separator": `{{ s.split('a') is none }}`,
	".split with a limit": `{{ s.split('a', 90000) is none }}`, ".split at blanks with a limit": `{{ s.split(none, 90000) is none }}`,
	".rsplit": `{{ s.rsplit('a', 90000) is none }}`, ".rsplit at blanks": `{{ s.rsplit(none, 90000) is none }}`,
	".splitlines": `{{ ('\n' * 90000).splitlines() is none }}`,
	".replace":    `{{ s.replace('', kb) is none }}`,
	".join":       `{{ kb.join(words) is none }}`,
	".format":     `{{ ('{0}' * 20).format(s) is none }}`,
	".ljust":      `{% for x in range(400) %}{% set _ = [` + strings.Repeat(`''.ljust(1000),`, 20) + `] %}{% endfor %}`, ".rjust": `{% for x in range(400) %}{% set _ = [` + strings.Repeat(`''.rjust(1000),`, 20) + `] %}{% endfor %}`, ".center": `{% for x in range(400) %}{% set _ = [` + strings.Repeat(`''.center(1000),`, 20) + `] %}{% endfor %}`,
	".zfill": `{% for x in range(400) %}{% set _ = [` + strings.Repeat(`''.zfill(1000),`, 20) + `] %}{% endfor %}`,
	// Methods of lists and mappings.
	"list.extend": `{{ [].extend(xs) is none }}`, "list.insert": `{{ xs.insert(0, 1) is none }}`, "list.copy": `{{ xs.copy() is none }}`,
	"dict.items": `{{ d.items() is none }}`, "dict.copy": `{{ d.copy() is none }}`, "dict.update": `{{ dict().update(d) is none }}`,
	"dict.keys": `{% for x in range(20) %}{% set _ = d.keys() %}{% endfor %}`, "dict.values": `{% for x in range(20) %}{% set _ = d.values() %}{% endfor %}`,
	"dict.pop":        `{% for x in range(20) %}{% set _ = d.pop('k' ~ x) %}{% endfor %}`,
	"list.append":     `{% set l = [] %}{% for x in xs %}{% set _ = l.append(x) %}{% endfor %}`,
	"dict.setdefault": `{% set e = {} %}{% for x in range(20000) %}{% set _ = e.setdefault(x, x) %}{% endfor %}`,
}

// makeNothing are the operations whose results are parts of what they are given,
// or no larger than a number. unique compares each item with each: the bound on
// steps keeps its result short.
var makeNothing = strings.Fields(`abs count d default length max min round unique
	.strip .lstrip .rstrip .isdigit .isdecimal .isnumeric .isalpha .isspace .isalnum .isupper .islower
	.startswith .endswith .partition .rpartition .find .rfind .index .rindex .count .removeprefix .removesuffix
	list.pop list.remove list.reverse list.index list.count dict.get`)

var chargeVars = func() map[string]any {
	xs, words, pairs, d := NewList(), NewList(), NewList(), NewDict()
	for i := range 1 << 15 {
		xs.Items = append(xs.Items, int64(i))
		if i < 1<<13 {
			pairs.Items = append(pairs.Items, NewList(int64(i), int64(i)))
		}
	}
	for i := range 1 << 11 {
		words.Items = append(words.Items, "Word")
		_ = d.Set(fmt.Sprint("k", i), int64(i))
	}
	return map[string]any{
		"s": strings.Repeat("a b\n", 6<<10), "big": strings.Repeat("<a>B\n", 1<<16), "quotes": strings.Repeat(`"`, 30<<10), "kb": strings.Repeat("x", 1<<10),
		"xs": xs, "words": words, "pairs": pairs, "d": d,
	}
}()

// made renders src and gives the bytes that this allocated and the steps it took.
func made(t *testing.T, src string, lim Limits) (bytes, steps int, err error) {
	t.Helper()
	tmpl, err := Parse(src)
	if err != nil {
		t.Fatalf("Parse(%q): %v", src, err)
	}
	vars := maps.Clone(chargeVars)
	vars["xs"] = &List{Items: slices.Clone(vars["xs"].(*List).Items)} // templates change them
	vars["d"] = vars["d"].(*Dict).clone()
	r := &renderer{&resources{ctx: t.Context(), lim: lim}, new(strings.Builder)}
	f := &frame{r: r, vars: vars, parent: &frame{r: r, vars: globals(r.resources)}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = f.run(tmpl.body)
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc), r.steps, err
}

// With every budget up to what suffices, a render takes little more than its budget. An operation that is not charged before it
// makes something would take it with a budget that all before it leave.
func TestWhatATemplateMakesIsChargedBeforeItIsMade(t *testing.T) {
	const least = 32 << 10
	for name, src := range makers {
		var size, steps int
		err := ErrLimit
		for budget := least; err != nil; budget *= 2 {
			lim := DefaultLimits()
			lim.Bytes = budget
			size, steps, err = made(t, src, lim)
			if err != nil && (!errors.Is(err, ErrLimit) || budget >= DefaultLimits().Bytes) {
				t.Errorf("%s: %v", name, err)
				break
			}
			// Half-grown buffers and scopes that are garbage at once count too.
			if size > 6*budget+100*steps {
				t.Errorf("%s: took %d bytes and %d steps with a budget of %d", name, size, steps, budget)
			}
		}
		if size < 4*least {
			t.Errorf("%s: took %d bytes in all, too few to show anything", name, size)
		}
	}
}

func TestEveryOperationIsKnownToMakeSomethingOrNothing(t *testing.T) {
	names := slices.Collect(maps.Keys(filters))
	for name := range stringMethods {
		names = append(names, "."+name)
	}
	for name := range listMethods {
		names = append(names, "list."+name)
	}
	for name := range dictMethods {
		names = append(names, "dict."+name)
	}
	for _, name := range names {
		if _, ok := makers[name]; ok == slices.Contains(makeNothing, name) {
			t.Errorf("%s is in one list too many or too few: has it a case of what it makes?", name)
		}
	}
}

func TestErrorsStayShortHoweverLongWhatTheyName(t *testing.T) {
	for _, src := range []string{
		`{{ [1] | map(big) }}`, `{{ [1] | select(big) }}`, `{{ ('{' ~ big ~ '}').format() }}`, `{{ ('{' ~ '9' * 100000 ~ '}').format() }}`,
		`{{ ('%' ~ '0' * 100000 ~ '9999d') % 1 }}`, `{{ {}[big] + 1 }}`,
	} {
		_, err := render(t, src, chargeVars, DefaultLimits())
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: an error of %d bytes", src, len(err.Error()))
		}
	}
}
