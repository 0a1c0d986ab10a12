#!/usr/bin/env python3
"""Writes jinja2.json: what Jinja2 renders for the templates below.

Run with Jinja2 3.1.6 in this folder: python3 make.py > jinja2.json
The environment is the one that transformers uses for chat templates.
"""
import json
import sys

from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


VARS = {
    "s": "Hello, World", "u": "héllo ▁ 日本語 🙂", "ws": " \t pad\n ", "n": 7, "neg": -7, "f": 2.5, "big": 1e20, "tiny": 1e-7,
    "t": True, "no": None, "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "empty": [],
    "d": {"z": 1, "a": [1, {"k": "v"}], "items": "shadow", "q": "it's \"q\" <&>"},
    "rows": [{"n": "x", "v": 2, "on": True}, {"n": "y", "v": 1, "on": False}, {"n": "z", "v": 2}],
}

# One case a line.
CASES = r'''
{{ s }}|{{ u }}|{{ n }}|{{ f }}|{{ big }}|{{ tiny }}|{{ t }}|{{ no }}|{{ missing }}|{{ xs }}|{{ d }}
{{ (1,) }}{{ (1, 2) }}{{ () }}{{ [none, true, 'a\'b', "a\"b", 'a\'"b', '\n\t\\', 'é'] }}{{ {'a': 1, 2: 'b'} }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ 1 ~ 'a' ~ none ~ true ~ 2.0 }} {{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ [1] + [2] }} {{ [0] * 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ none == none }} {{ 1 != '1' }}
{{ 'ell' in s }} {{ 'x' not in s }} {{ 3 in xs }} {{ 'z' in d }} {{ 1 in d }} {{ none in [none] }} {{ missing in xs }} {{ 'a' in missing }}
{{ not true }} {{ not missing }} {{ true and 0 }} {{ '' or 'x' }} {{ 'a' and 'b' or 'c' }} {{ not 1 == 2 }} {{ not true or true }}
{{ 'y' if n > 5 else 'n' }} {{ 'y' if n > 9 }} {{ 'a' if false else 'b' if false else 'c' }}
{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[:-3] }} {{ s[-3:] }} {{ s[::3] }} {{ u[2:9] }} {{ xs[1:] }} {{ xs[::-1] }} {{ xs[5:] }} {{ xs[5] }} {{ (1,2,3)[1:] }} {{ xs[-2:] }} {{ xs[10:0:-1] }} {{ xs[:1:-1] }}
{{ d.z }} {{ d['z'] }} {{ d['items'] }} {{ d.a[1].k }} {{ d.a.1.k }} {{ d.nope }} {{ d['nope'] }} {{ xs.0 }} {{ no.foo }} {{ xs['0'] }}
{{ d.items() | list }}|{{ d.keys() | list }}|{{ d.values() | list }}|{{ d.get('z') }}{{ d.get('q2', 5) }}{{ d.get('q2') }}
{{ ws.strip() }}|{{ ws.lstrip() }}|{{ ws.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcab'.rstrip('ab') }}|{{ 'xyz'.lstrip('yx') }}
{{ 'a,b,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'a b c'.split(none, 1) }} {{ ''.split(',') }} {{ ''.split() }} {{ ' a b c '.rsplit(none, 1) }} {{ 'a</think>b'.split('</think>')[-1] }}
{{ s.upper() }} {{ s.lower() }} {{ 'hello world'.title() }} {{ 'hELLO'.capitalize() }} {{ s.swapcase() }} {{ s.startswith('He') }} {{ s.endswith(('x', 'ld')) }} {{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ s.count('l') }} {{ u.find('日') }}
{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }} {{ 'abc'.replace('', '-') }} {{ ','.join(['a', 'b']) }} {{ 'x'.isdigit() }}{{ '12'.isdigit() }}{{ 'ab'.isalpha() }}{{ ''.isalpha() }}{{ ' '.isspace() }}{{ 'a1'.isalnum() }} {{ 'AB'.isupper() }}{{ 'ab'.islower() }}{{ 'a1'.islower() }}{{ '1'.islower() }}
{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }} {{ 'a\nb\r\nc\n'.splitlines() }} {{ 'ab'.removeprefix('a') }} {{ 'ab'.removesuffix('b') }} {{ '7'.zfill(3) }} {{ '-7'.zfill(4) }} {{ 'ab'.ljust(4) }}| {{ 'ab'.rjust(4) }}|
{{ '{} {}'.format(1, 'a') }} {{ '{1} {0}'.format(1, 'a') }} {{ '{x}{{}}'.format(x=3) }} {{ '%s is %d %5.2f %r %%' % ('a', 3, 2.5, 'b') }} {{ '%s' % 5 }} {{ '%03d|%-5s|%5s|%x' | format(7, 'ab', 'cd', 255) }}
{{ ws | trim }}|{{ 'xax' | trim('x') }}|{{ s | upper }}|{{ s | lower }}|{{ 'a b' | title }}|{{ 'aB' | capitalize }}|{{ s | length }}|{{ u | length }}|{{ xs | count }}|{{ d | length }}
{{ missing | default('x') }} {{ '' | default('x') }} {{ '' | default('x', true) }} {{ none | default('x') }} {{ missing | d }} {{ no | default('y', boolean=true) }}
{{ xs | first }} {{ xs | last }} {{ empty | first }} {{ s | first }} {{ xs | sort }} {{ xs | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ rows | sort(attribute='v') | map(attribute='n') | list }}
{{ xs | join }} {{ xs | join(', ') }} {{ rows | join('-', attribute='n') }} {{ xs | reverse | list }} {{ 'abc' | reverse }} {{ xs | sum }} {{ rows | sum(attribute='v') }} {{ xs | max }} {{ xs | min }} {{ [1, 1, 2, 'a', 'A'] | unique | list }}
{{ xs | map('string') | list }} {{ words | map('upper') | join }} {{ rows | map(attribute='n') | list }} {{ rows | map(attribute='on', default='?') | list }} {{ [[1, 2], [3]] | map('length') | list }} {{ ['a,b'] | map('replace', ',', ';') | list }}
{{ xs | select('odd') | list }} {{ xs | reject('odd') | list }} {{ [0, 1, '', 'a'] | select | list }} {{ rows | selectattr('on') | map(attribute='n') | list }} {{ rows | selectattr('v', 'equalto', 2) | map(attribute='n') | list }} {{ rows | rejectattr('v', '==', 2) | map(attribute='n') | list }} {{ rows | selectattr('on', 'defined') | list | length }} {{ xs | select('in', [1, 2]) | list }}
{{ '3' | int + 1 }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ '3.9' | int }} {{ 3.9 | int }} {{ '0x1F' | int(0, 16) }} {{ '2.5' | float }} {{ 'x' | float }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 | round(method='floor') }} {{ -3 | abs }} {{ -2.5 | abs }}
{{ d | tojson }} {{ u | tojson }} {{ [1, 2.0, none, true, 'a"\\\n\t\u0001/'] | tojson }} {{ {} | tojson }} {{ [] | tojson }} {{ 1e20 | tojson }} {{ 1e-7 | tojson }} {{ 1.5 | tojson }} {{ {1: 2, none: 3, true: 4} | tojson }}
{{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ {} | tojson(indent=4) }} {{ d | tojson(separators=(',', ':')) }} {{ d | tojson(sort_keys=true) }} {{ u | tojson(ensure_ascii=true) }} {{ [[1], {'a': []}] | tojson(indent=1) }}
{{ d | dictsort }} {{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'A': 2} | dictsort(false, 'value') }} {{ d | items | list }} {{ missing | items | list }} {{ '<a&"\'>' | e }} {{ '<a>' | safe }} {{ 5 | string }} {{ 'abc' | list }} {{ {'a': 1} | list }}
{{ 'one\ntwo\n\nthree' | indent }}|{{ 'one\ntwo' | indent(2, true) }}|{{ 'a\n\nb' | indent(2, blank=true) }}|{{ 'a\nb' | indent('> ') }}
{{ missing is defined }} {{ n is defined }} {{ no is none }} {{ s is string }} {{ d is mapping }} {{ xs is iterable }} {{ s is iterable }} {{ n is iterable }} {{ xs is sequence }} {{ d is sequence }} {{ n is number }} {{ t is number }} {{ t is boolean }} {{ n is integer }} {{ t is integer }} {{ f is float }} {{ missing is iterable }} {{ no is iterable }}
{{ n is odd }} {{ n is even }} {{ 9 is divisibleby 3 }} {{ n is eq 7 }} {{ n is gt(5) }} {{ n is lessthan 3 }} {{ 3 is in xs }} {{ n is not none }} {{ not n is none }} {{ s is lower }} {{ 'ab' is lower }} {{ 'AB' is upper }} {{ t is true }} {{ 1 is true }} {{ false is false }} {{ none is sameas none }} {{ 'trim' is filter }} {{ missing is undefined }} {{ xs.append is callable }}
{% if n == 7 %}a{% elif n == 8 %}b{% else %}c{% endif %}{% if missing %}x{% else %}y{% endif %}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'héy' %}[{{ c }}]{% endfor %}
{% for x in empty %}x{% else %}none{% endfor %}{% for x in missing %}x{% else %}undef{% endfor %}{% for x in xs if x > 1 %}{{ x }}{{ loop.length }}{% endfor %}
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}{{ range(3) | list }}{{ range(5, 1, -2) | list }}{{ range(2, 5) | list }}{{ range(5, 1) | list }}
{% set a = 1 %}{% for x in xs %}{% set a = x %}{{ a }}{% endfor %}{{ a }}{% set ns = namespace(v=0, w='q') %}{% for x in xs %}{% set ns.v = ns.v + x %}{% endfor %}{{ ns.v }}{{ ns.w }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c %}block {{ n }}{% endset %}{{ c }}{% set e | upper %}up{% endset %}{{ e }}{% if true %}{% set z = 3 %}{% endif %}{{ z }}
{% macro m(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}{{ varargs }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='y') }}{{ m(a=5) }}{{ m(1, 2, 3) }}{{ m.name }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}in{{ n }}{% endcall %}{% macro each(l) %}{% for i in l %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) each(xs) %}-{{ i }}{% endcall %}
{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * (fact(n - 1) | int) }}{% endif %}{% endmacro %}{{ fact(6) }}
{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}{% filter upper %}text {{ s }}{% endfilter %}{% generation %}gen{% endgeneration %}
{% raw %}{{ not }} {% if %}{% endraw %}|{# comment {{ x }} #}|{{ '{{' }}{{ '}}' }}|{{ {'a': {'b': 1}}['a']['b'] }}|{{ {'a': {'b': 1}} }}
{{ "a" "b" }} {{ 1_000 }} {{ 1e3 }} {{ 1.5e-3 }} {{ '\x41\u0042\101' }} {{ "it's" }} {{ 'tab\there' }} {{ true }}{{ True }}{{ none }}{{ None }}{{ false }}
{{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ dict({'q': 1}, r=2) }} {{ dict(b=1, a=2) | tojson }} {{ namespace(a=1).a }}
{{ [1, 2, 3][1:][0] }} {{ (s | upper)[0:2] }} {{ s.split(', ')[1].upper()[:3] }} {{ -n | abs }} {{ n | string ~ 'x' }} {{ 1 + n | string | length }} {{ not s is string }}
{{ xs | length > 2 and s }} {{ n in [7] and 'in' }} {{ (n, f) | join('/') }} {{ [n] * 2 + [f] }} {{ 'a' ~ n }} {{ 3 - 1 }}
{{ 'a' ~ n + 1 }}
{{ 0.1 + 0.2 }} {{ 1 / 3 }} {{ 1e16 }} {{ 123456789.0 * 10 }} {{ 1e15 }} {{ 5 / 1 }} {{ 2 ** 0.5 }} {{ 1.0 }} {{ 100000000000000000000.0 }}
{{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1.0} }} {{ (1, 2) == [1, 2] }} {{ missing == missing2 }} {{ missing == none }} {{ 'a' == 1 }} {{ [] == false }}
{{ rows | map(attribute='n') | map('upper') | join(',') }} {{ d.a.0 + d['a'][0] }} {{ rows[0].n ~ rows[-1]['n'] }} {{ d['a'] | last }}
{{ loop is defined }}{% for x in [1] %}{{ loop is defined }}{% endfor %}
{% set x = namespace(found=false) %}{% for r in rows %}{% if r.v == 1 %}{% set x.found = true %}{% endif %}{% endfor %}{{ x.found }}{% set messages = rows[1:] %}{{ messages[0]['n'] }}{% set rows = [] %}{{ rows | length }}
{{ 'a' if missing is defined else 'b' }}{{ ('x' if t) ~ ('y' if no) }}{{ (missing or 'dflt') | upper }}{{ no or missing or 0 }}
{{- 'start' }}{{ 'end' -}}
{{ n.foo is defined }} {{ s.nope is defined }} {{ d.z.q is defined }} {{ xs.foo is undefined }} {{ ''.join(xs | map('string')) }} {{ s | replace('o', '0') | replace('l', '1', 1) }} {{ 'ß' | upper }} {{ 'straße'.upper() }} {{ 'ǆ'.title() }}
{{ 'x' is string and 'y' is not number }} {{ n is number and n > 3 }} {{ 5 is divisibleby(5) and true }} {{ s is string or missing }} {{ ([] is iterable) ~ ({} is mapping) }}
{%- set loop_messages = rows -%}{%- for m in loop_messages -%}{{ '<|' + m['n'] + '|>\n' + m.v | string + '<|end|>' }}{%- endfor -%}
{% for m in rows %}{% if loop.first and m.n == 'x' %}{% set first_done = true %}F{% endif %}{{ first_done is defined }}{% endfor %}{{ first_done is defined }}
{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a }}{{ b }}{% if b == 3 %}{% continue %}{% endif %}|{% endfor %}{{ loop.index }};{% endfor %}
{{ [[1, 'a'], [2, 'b']] | map(attribute=1) | join }}{{ [[2, 'a'], [1, 'b']] | sort | first }}{{ [[2, 'a'], [1, 'b']] | sort(attribute='1') | first }}{{ (1, 2) | tojson }}{{ ((1,), [2]) }}
'''

# Cases of more than one line.
LINES = [
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a  {% if true %}  b  {% endif %}  c", "  {%+ if true %}b{%+ endif %}\nc\n\n",
    "a   {%- if true -%}   b   {%- endif -%}   c\n", "x {{- s -}}  y {{ s -}}\n z {{- s }}\n", "  {# comment #}\nnext\n",
    "\t{% set q = 1 %}\t{% set r = 2 %}\nend", "{% for x in xs -%}\n  {{ x }}\n{%- endfor %}\ndone", "{% if true -%}\n\n   text\n\n{%- endif %}\nafter",
    "  {{ s }}\n  {{ s }}  \n\n{% if true %}\n\nx\n{% endif %}\n\ny\n", "line {%- raw %} r {% endraw -%}  t", "{% if true %}{# c #}\nx{% endif +%}\ny",
    "a\r\n{% if true %}\r\nb\rc{% endif %}\r\n", "{%- for m in rows %}\n    {%- if m.on %}\n        {{- m.n }}\n    {%- else %}\n        {{- '-' }}\n    {%- endif %}\n{%- endfor %}\n",
    "  {% raw %}\n  x {{ y }}\n  {% endraw %}\nz", "{{ s }}\n{{ s -}}\n\n  {{ s }}", "{#- c -#}  a  {#+ d +#}\n  b", "a\n\n  {%- if true %}\n\n  b{% endif %}", "",
    "\n", "\n\n", "{% if true %}\n", "x\n  {%- set y = 1 +%}\n  z",
]

FAIL = r'''
{{ missing.x }}
{{ missing.x.y }}
{{ missing() }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ missing + 1 }}
{{ n() }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1 in 5 }}
{{ 5 | length }}
{% for x in 5 %}{% endfor %}
{{ s | nosuchfilter }}
{{ s is nosuchtest }}
{{ s.nosuch() }}
{% nosuch %}
{{ 'a }}
{{ 1 + }}
{% if x %}
{% endif %}
{% for x in y %}{% else %}
{{ (1 }}
{{ ) }}
{{ [1, }}
{{ {1 2} }}
{% set x %}
{% break %}
{# never closed
{% raw %} never
{{ range(1, 2, 0) }}
{{ xs | items | list }}
{{ {[1]: 2} }}
{{ 'x' < 1 }}
{{ missing | tojson }}
{{ s | join(',', attribute='a', x=1) | nosuch }}
{% for a, b in [[1]] %}{% endfor %}
{% set a, b = [1] %}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{{ [3, 'a'] | sort }}
{{ "%d" % 'a' }}
{{ "%s %s" % 'a' }}
{{ 'abc'.index('z') }}
{{ 'a'.split('') }}
{% set s.x = 1 %}
'''


def main():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    out = []
    for src in CASES.strip("\n").split("\n") + LINES:
        try:
            text = env.from_string(src).render(**VARS)
        except Exception as e:  # a case that fails is listed all the same
            out.append({"template": src, "error": f"{type(e).__name__}: {e}"})
            continue
        out.append({"template": src, "text": text})
    for src in FAIL.strip("\n").split("\n"):
        try:
            out.append({"template": src, "text": env.from_string(src).render(**VARS)})
        except Exception as e:
            out.append({"template": src, "error": f"{type(e).__name__}: {e}"})
    json.dump({"vars": VARS, "cases": out}, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


main()
