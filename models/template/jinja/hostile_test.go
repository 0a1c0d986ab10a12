package jinja

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func render(t *testing.T, src string, vars map[string]any, lim Limits) (string, error) {
	t.Helper()
	tmpl, err := Parse(src)
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", src, err)
	}
	return tmpl.Render(t.Context(), vars, lim)
}

func TestHostileTemplatesEndAtTheirLimits(t *testing.T) {
	lim := DefaultLimits()
	lim.Steps, lim.Bytes = 100_000, 32<<20
	for name, src := range map[string]string{
		"huge range":         `{% for x in range(10**9) %}{% endfor %}`,
		"huge bounds":        `{{ range(-9223372036854775807, 9223372036854775807, 1) | length }}`,
		"nested loops":       `{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}`,
		"repeated string":    `{{ 'a' * 10**12 }}`,
		"repeated list":      `{{ [0] * 10**12 }}`,
		"overflowing repeat": `{{ 'ab' * 9223372036854775807 }}`,
		"doubled string":     `{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}`,
		"doubled sum":        `{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}`,
		"doubled list":       `{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}`,
		"extended by itself": `{% set l = [1] %}{% for i in range(99) %}{% set _ = l.extend(l) %}{% endfor %}`,
		"replaced":           `{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = n.s.replace('a', 'aaaaaaaa') %}{% endfor %}`,
		"joined":             `{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = n.s.join('abcdefgh') %}{% endfor %}`,
		"formatted":          `{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = '%s%s%s%s' % (n.s, n.s, n.s, n.s) %}{% endfor %}`,
		"braces":             `{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = '{0}{0}{0}{0}'.format(n.s) %}{% endfor %}`,
		"captured":           `{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set x %}{{ n.s }}{{ n.s }}{% endset %}{% set n.s = x %}{% endfor %}`,
		"indented":           `{% set n = namespace(s='a\na\n') %}{% for i in range(99) %}{% set n.s = n.s | indent(n.s) %}{% endfor %}`,
		"escaped":            `{% set n = namespace(s='&&&&') %}{% for i in range(99) %}{% set n.s = n.s | e %}{% endfor %}{{ n.s }}{% set m = namespace(s='<') %}{% for i in range(10**6) %}{% set m.s = m.s | e ~ m.s %}{% endfor %}`,
		"endless recursion":  `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
		"mutual recursion":   `{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}`,
		"default recursion":  `{% macro f(x=f()) %}{% endmacro %}{{ f() }}`,
		"call recursion":     `{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}`,
		"list within itself": `{% set l = [] %}{% set _ = l.append(l) %}{{ l }}`,
		"itself as JSON":     `{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}`,
		"itself equal":       `{% set l = [] %}{% set _ = l.append(l) %}{% set m = [] %}{% set _ = m.append(m) %}{{ l == m }}`,
		"itself ordered":     `{% set l = [] %}{% set _ = l.append(l) %}{% set m = [] %}{% set _ = m.append(m) %}{{ l < m }}`,
		"shared doubling":    `{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}`,
		"JSON doubling":      `{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | tojson }}`,
		"long scans":         `{% set s = 'a' * 10**6 %}{% for i in range(10**6) %}{% set _ = 'b' in s %}{% endfor %}`,
		"long methods":       `{% set s = 'a' * 10**6 %}{% for i in range(10**6) %}{% set _ = s.find('b') %}{% endfor %}`,
		"long comparisons":   `{% set s = 'a' * 10**6 %}{% set t = 'a' * 10**6 %}{% for i in range(10**6) %}{% set _ = s == t %}{% endfor %}`,
		"long indexing":      `{% set s = 'a' * 10**6 %}{% for i in range(10**6) %}{% set _ = s[-1] %}{% endfor %}`,
		"much output":        `{% for i in range(10**6) %}{{ 'a' * 10000 }}{% endfor %}`,
		"long chain":         `{{ ` + strings.Repeat("1+", 5000) + `1 }}`,
		"long postfix":       `{{ x` + strings.Repeat("|string", 5000) + ` }}`,
	} {
		_, err := render(t, src, map[string]any{"x": "x"}, lim)
		if !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %.200v, want %v", name, err, ErrLimit)
		}
	}
}

// Each of these does much more than it makes: before what is looked through was
// charged too, they ended well after many times the work that they may do.
func TestWorkIsChargedAndNotOnlyWhatItMakes(t *testing.T) {
	lim := DefaultLimits()
	lim.Steps, lim.Bytes, lim.Time = 100_000, 32<<20, 0
	long := strings.Repeat("é", 400)
	for name, src := range map[string]string{
		"characters to strip": `{% set _ = ('a' * 10**5).strip('` + long + `') %}`,
		"characters to trim":  `{{ ('a' * 10**5) | trim('` + long + `') }}`,
		"dotted path":         `{% set d = {} %}{% set _ = d.update({'a': d}) %}{{ ([d] * 1000) | map(attribute='a' + '.a' * 10**5) | list | length }}`,
		"long keys":           `{% set k = 'k' * 10**6 %}{% set d = {k: 1} %}{% for i in range(1000) %}{% set _ = d[k] %}{% endfor %}`,
		"long keys got":       `{% set k = 'k' * 10**6 %}{% set d = {k: 1} %}{% for i in range(1000) %}{% set _ = d.get(k) %}{% endfor %}`,
		"long keys searched":  `{% set k = 'k' * 10**6 %}{% set d = {k: 1} %}{% for i in range(1000) %}{% set _ = k in d %}{% endfor %}`,
		"long attributes":     `{% set k = 'k' * 10**6 %}{% for i in range(1000) %}{% set _ = 1[k] %}{% endfor %}`,
		"long test names":     `{% set k = 'k' * 10**6 %}{% for i in range(1000) %}{% set _ = k is filter %}{% endfor %}`,
		"spread arguments":    `{% macro f() %}{% endmacro %}{% set l = [0] * 10**5 %}{% for i in range(100) %}{{ f(*l) }}{% endfor %}`,
		"named arguments":     `{% macro f() %}{% endmacro %}{% set n = namespace(d={}) %}{% for i in range(2000) %}{% set _ = n.d.update({i|string: i}) %}{% endfor %}{% for i in range(1000) %}{{ f(**n.d) }}{% endfor %}`,
		"affixes":             `{% set t = ('b',) * 10**5 %}{% for i in range(100) %}{% set _ = 'a'.startswith(t) %}{% endfor %}`,
		"case":                `{% set s = 'A' * 10**6 %}{% for i in range(30) %}{% set _ = s is upper %}{% endfor %}`,
		"letters":             `{% set s = 'a' * 10**6 %}{% for i in range(10) %}{% set _ = s | upper %}{% endfor %}`,
		"removed items":       `{% set l = [0] * 10**5 %}{% for i in range(1000) %}{% set _ = l.remove(0) %}{% endfor %}`,
		"lines":               `{% set s = 'a\n' * 10**6 %}{% set _ = s.splitlines() %}`,
	} {
		if got, err := render(t, src, nil, lim); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %.80q, %.200v, want %v", name, got, err, ErrLimit)
		}
	}
}

func TestSplittingFromTheRightTakesNoMoreThanFromTheLeft(t *testing.T) {
	lim := DefaultLimits()
	lim.Time = 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := render(t, `{% set l = ('a ' * 20000).rsplit(none, 10**6) %}{{ l | length }} {{ 'a b  c d'.rsplit(none, 2) }}`, nil, lim)
	runtime.ReadMemStats(&after)
	if err != nil || got != "20000 ['a b', 'c', 'd']" {
		t.Fatalf("Render = %q, %v", got, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("splitting 40 KB took %d bytes", n)
	}
}

func TestSortingEndsAtTheFirstComparisonThatFails(t *testing.T) {
	var compared int
	list := make([]int, 1<<12)
	failure := errors.New("no order")
	err := mergeSort(list, func(int, int) (int, error) { compared++; return 0, failure })
	if !errors.Is(err, failure) || compared != 1 {
		t.Errorf("mergeSort = %v after %d comparisons, want the failure after one", err, compared)
	}
	for i := range list {
		list[i] = (i * 2654435761) % 1009
	}
	order := func(a, b int) (int, error) { return a>>3 - b>>3, nil }
	want := slices.Clone(list)
	slices.SortStableFunc(want, func(a, b int) int { return a>>3 - b>>3 })
	if err := mergeSort(list, order); err != nil || !slices.Equal(list, want) {
		t.Errorf("mergeSort is no stable sort: %v", err)
	}
}

func TestARenderEndsWhenItsTimeIsUp(t *testing.T) {
	lim := DefaultLimits()
	lim.Time = 1
	for name, src := range map[string]string{
		"many steps": `{% for x in range(10**5) %}{% endfor %}`,
		"few steps":  `{% set s = 'a' * 10**6 %}{% for i in range(9) %}{% set _ = s.find('b') %}{% endfor %}`,
	} {
		if _, err := render(t, src, nil, lim); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "more than 1ns") {
			t.Errorf("%s: Render = %v, want %v for the time", name, err, ErrLimit)
		}
	}
}

func TestHostileSourcesAreRefused(t *testing.T) {
	for name, src := range map[string]string{
		"nested parentheses": `{{ ` + strings.Repeat("(", 1e5),
		"nested lists":       `{{ ` + strings.Repeat("[", 1e5),
		"nested dicts":       `{{ ` + strings.Repeat("{1:", 1e5),
		"nested signs":       `{{ ` + strings.Repeat("-", 1e5) + `1 }}`,
		"nested not":         `{{ ` + strings.Repeat("not ", 1e5) + `1 }}`,
		"nested if":          strings.Repeat("{% if 1 %}", 1e4),
		"nested elif":        "{% if 1 %}" + strings.Repeat("{% elif 1 %}", 1e4),
		"nested else":        "{{ " + strings.Repeat("1 if 1 else ", 1e4) + "1 }}",
		"nested for":         strings.Repeat("{% for x in x %}", 1e4),
		"nested arguments":   "{{ f" + strings.Repeat("(f", 1e4),
		"nested subscripts":  "{{ f" + strings.Repeat("[f", 1e4),
		"nested tests":       "{{ 1 is in " + strings.Repeat("[1 is in ", 1e4),
		"too long":           strings.Repeat("x", MaxSource+1),
		"long name":          "{{ " + strings.Repeat("x", maxName+1) + " }}",
		"include":            `{% include '/etc/passwd' %}`,
		"import":             `{% import '/etc/passwd' as x %}`,
		"from":               `{% from '/etc/passwd' import x %}`,
		"extends":            `{% extends '/etc/passwd' %}`,
		"huge number":        `{{ 99999999999999999999 }}`,
		"huge float":         `{{ 1e999 }}`,
		"break in macro":     `{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}`,
	} {
		var syntax *SyntaxError
		if _, err := Parse(src); !errors.As(err, &syntax) {
			t.Errorf("%s: Parse error = %v, want a SyntaxError", name, err)
		}
	}
}

func TestIntegersThatDoNotFitAreErrors(t *testing.T) {
	for _, src := range []string{
		`{{ 9223372036854775807 + 1 }}`, `{{ -9223372036854775807 - 2 }}`, `{{ 9223372036854775807 * 2 }}`,
		`{{ 2 ** 63 }}`, `{{ -(-9223372036854775807 - 1) }}`, `{{ (-9223372036854775807 - 1) // -1 }}`,
		`{{ (-9223372036854775807 - 1) * -1 }}`, `{{ (-9223372036854775807 - 1) | abs }}`,
	} {
		if got, err := render(t, src, nil, DefaultLimits()); !errors.Is(err, errOverflow) {
			t.Errorf("%s = %q, %v, want %v", src, got, err, errOverflow)
		}
	}
}

func TestPythonInternalsAreOutOfReach(t *testing.T) {
	for _, src := range []string{
		`{{ ''.__class__ }}`, `{{ [].__class__.__mro__ }}`, `{{ self }}`, `{{ cycler }}`, `{{ ''['__class__'] }}`, `{{ range.__globals__ }}`,
	} {
		if got, err := render(t, src, nil, DefaultLimits()); err == nil && got != "" {
			t.Errorf("%s = %q, want nothing", src, got)
		}
	}
}

func TestACancelledContextEndsTheRender(t *testing.T) {
	tmpl, err := Parse(`{% for x in range(10**5) %}{% for y in range(100) %}{{ x * y }}{% endfor %}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tmpl.Render(ctx, nil, DefaultLimits()); !errors.Is(err, context.Canceled) {
		t.Errorf("Render = %v, want %v", err, context.Canceled)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	_, err := render(t, "a\nb\n{{ 1 + 'a' }}", nil, DefaultLimits())
	var placed *Error
	if !errors.As(err, &placed) || placed.Line != 3 {
		t.Errorf("Render = %v, want an error on line 3", err)
	}
	_, err = Parse("a\n{% nope %}")
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 2 {
		t.Errorf("Parse = %v, want an error on line 2", err)
	}
}

func FuzzNoTemplatePanicsOrExceedsItsLimits(f *testing.F) {
	for _, src := range []string{
		`{% for m in messages %}{{ m.role ~ m['content'] | trim }}{% endfor %}`,
		`{%- macro f(a, b=1) -%}{{ caller() }}{%- endmacro -%}{% call f(1) %}x{% endcall %}`,
		`{% set ns = namespace(a=[]) %}{% set _ = ns.a.append(1) %}{{ ns.a | tojson(indent=2) }}`,
		`{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | join(', ') }}`,
		`{{ 'a,b'.split(',')[::-1] }}{{ '%s %d' % ('x', 3) }}{{ '{} {x}'.format(1, x=2) }}`,
		`{% raw %}{{ }}{% endraw %}{# c #}{% if a is not none and b or c %}{% elif 1 < 2 < 3 %}{% else %}{% endif %}`,
	} {
		f.Add(src)
	}
	messages := []byte(`[{"role":"user","content":"hé"},{"role":"tool","content":[{"type":"text"}]}]`)
	lim := Limits{Steps: 20000, Bytes: 1 << 20, Depth: 200}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Parse(src)
		if err != nil {
			return
		}
		vars, err := FromJSON(messages) // anew: a render may change it
		if err != nil {
			t.Fatal(err)
		}
		text, err := tmpl.Render(t.Context(), map[string]any{"messages": vars}, lim)
		if err != nil && strings.Contains(err.Error(), "internal fault") {
			t.Fatalf("Render(%q): %v", src, err)
		}
		if len(text) > lim.Bytes {
			t.Fatalf("Render(%q) gave %d bytes", src, len(text))
		}
	})
}
