package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// drawing draws schemas and values of a few names, numbers and texts, so that they meet.
type drawing struct {
	*rand.Rand
	draft    string // 2020, 7 or 4
	defs     int    // definitions that there are
	within   bool   // one of them: it refers to a schema below a property or an item
	keywords map[string]bool
}

var (
	drawnNames    = []string{"a", "b", "ab", "c", "é", ""}
	drawnTexts    = []string{"", "a", "b", "ab", "ba", "aab", "abc", "é", "😀b", "a\n\"\\", "10.0.0.1", "2024-02-29", "ca761232-ed42-11ce-bacd-00aa0057b223", "x y"}
	drawnNumbers  = []string{"0", "1", "2", "3", "4", "6", "7", "12", "-1", "-3", "0.5", "1.5", "-0.25", "2.75", "100"}
	drawnPatterns = []string{`""`, `"a"`, `"^a"`, `"b$"`, `"^[ab]*$"`, `"^(a|b)?$"`, `"^.{2}$"`, `"^(?!a)"`, `"[^a-c]"`, `"^\\w+$"`, `"é|😀"`, `"^a+b?"`, `"(?=.*b)a"`}
)

func choice[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// value is a value that nests up to depth deep.
func (d *drawing) value(depth int) *value {
	switch n := d.IntN(12); {
	case n < 1:
		return &value{kind: nulls}
	case n < 2:
		return &value{kind: booleans, truth: d.IntN(2) == 0}
	case n < 5 || depth == 0 && n < 8:
		v, _ := read([]byte(choice(d.Rand, drawnNumbers)))
		return v
	case n < 7 || depth == 0:
		return &value{kind: strs, text: choice(d.Rand, drawnTexts)}
	case n < 9:
		v := &value{kind: arrays}
		for range d.IntN(5) {
			v.items = append(v.items, d.value(depth-1))
		}
		return v
	}
	v := &value{kind: objects}
	for _, i := range d.Perm(len(drawnNames))[:d.IntN(4)] {
		v.members = append(v.members, member{drawnNames[i], d.value(depth - 1)})
	}
	return v
}

func (d *drawing) values(most, depth int) string {
	var out []string
	for range 1 + d.IntN(most) {
		if text := d.value(depth).write(style{}); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (d *drawing) names(most int) string {
	var out []string
	for _, i := range d.Perm(len(drawnNames))[:1+d.IntN(most)] {
		out = append(out, quote(drawnNames[i]))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// subs are some schemas within one that nests up to depth deep.
func (d *drawing) subs(depth int) string {
	return "[" + many(1+d.IntN(3), func(int) string { return d.schema(depth - 1) }) + "]"
}

// named are schemas by name.
func (d *drawing) named(names []string, depth int) string {
	seen := d.Perm(len(names))[:1+d.IntN(3)]
	return "{" + many(len(seen), func(i int) string { return fmt.Sprintf(`%s:%s`, quote(names[seen[i]]), d.schema(depth-1)) }) + "}"
}

// drawn is a keyword, and how its value is drawn.
type drawn struct {
	name string
	draw func(d *drawing, depth int) string
}

// group is keywords that are drawn together.
type group struct {
	drafts   string // that have them; "" stands for all
	nested   bool   // they hold schemas
	keywords []drawn
}

var groups []group

func init() { // their functions draw from them
	groups = []group{
		{"2020 7", false, []drawn{{"const", func(d *drawing, depth int) string { return d.value(min(depth, 1)).write(style{}) }}}},
		{"", false, []drawn{{"enum", func(d *drawing, depth int) string { return d.values(5, min(depth, 2)) }}}},
		{"2020 7", false, []drawn{
			{"minimum", (*drawing).number}, {"maximum", (*drawing).number}, {"exclusiveMinimum", (*drawing).number}, {"exclusiveMaximum", (*drawing).number},
			{"multipleOf", of("1", "2", "3", "0.5", "1.5", "7")},
		}},
		{"4", false, []drawn{{"minimum", (*drawing).number}, {"maximum", (*drawing).number}, {"multipleOf", of("1", "2", "0.5")}}},
		{"", false, []drawn{{"minLength", of("0", "1", "2")}, {"maxLength", of("0", "1", "2", "4")}, {"pattern", of(drawnPatterns...)}}},
		{"", false, []drawn{{"format", of(`"ipv4"`, `"date"`, `"uuid"`, `"unheard-of"`)}}},
		{"2020", true, []drawn{{"items", (*drawing).sub}, {"prefixItems", (*drawing).subs}}},
		{"7 4", true, []drawn{{"items", (*drawing).subs}, {"additionalItems", (*drawing).sub}}},
		{"", false, []drawn{{"minItems", of("0", "1", "2", "3")}, {"maxItems", of("0", "1", "2", "3")}, {"uniqueItems", of("true", "false")}}},
		{"2020", true, []drawn{{"contains", (*drawing).sub}, {"minContains", of("0", "1", "2")}, {"maxContains", of("0", "1", "3")}}},
		{"", true, []drawn{
			{"properties", func(d *drawing, depth int) string { return d.named(drawnNames, depth) }},
			{"patternProperties", func(d *drawing, depth int) string { return d.named([]string{"a", "^b", "c$", "^.?$"}, depth) }},
			{"additionalProperties", (*drawing).sub},
		}},
		{"2020 7", false, []drawn{{"propertyNames", of(`{"maxLength":1}`, `{"pattern":"^[ab]"}`, `{"enum":["a","b","c"]}`, `{"not":{"const":"a"}}`, "true", `{"minLength":1}`)}}},
		{"", false, []drawn{{"required", func(d *drawing, _ int) string { return d.names(2) }}}},
		{"", false, []drawn{{"minProperties", of("0", "1", "2")}, {"maxProperties", of("0", "1", "2", "3")}}},
		{"2020", true, []drawn{
			{"dependentRequired", func(d *drawing, _ int) string { return `{"a":` + d.names(2) + `}` }},
			{"dependentSchemas", func(d *drawing, depth int) string { return `{"b":` + d.schema(depth-1) + `}` }},
		}},
		{"7 4", true, []drawn{{"dependencies", func(d *drawing, depth int) string { return `{"a":` + d.names(2) + `,"b":` + d.object(depth-1) + `}` }}}},
		{"", true, []drawn{{"allOf", (*drawing).subs}}},
		{"", true, []drawn{{"anyOf", (*drawing).subs}}},
		{"", true, []drawn{{"oneOf", (*drawing).subs}}},
		{"", true, []drawn{{"not", (*drawing).sub}}},
		{"2020 7", true, []drawn{{"if", (*drawing).sub}, {"then", (*drawing).sub}, {"else", (*drawing).sub}}},
		{"2020", true, []drawn{{"unevaluatedProperties", (*drawing).sub}, {"unevaluatedItems", (*drawing).sub}}},
	}
}

// of draws one of texts.
func of(texts ...string) func(*drawing, int) string {
	return func(d *drawing, _ int) string { return choice(d.Rand, texts) }
}

func (d *drawing) number(int) string { return choice(d.Rand, drawnNumbers) }

func (d *drawing) sub(depth int) string { return d.schema(depth - 1) }

// schema is a schema that nests up to depth deep.
func (d *drawing) schema(depth int) string {
	if d.draft != "4" && d.IntN(10) == 0 {
		return choice(d.Rand, []string{"true", "false", "true"})
	}
	return d.object(depth)
}

// object is schema where true and false are none.
func (d *drawing) object(depth int) string {
	if d.defs > 0 && !d.within && d.IntN(8) == 0 {
		d.keywords["$ref"] = true
		return fmt.Sprintf(`{"$ref":"#/definitions/d%d"}`, d.IntN(d.defs))
	}
	var members []string
	has := map[string]bool{}
	add := func(key, text string) {
		if !has[key] {
			has[key], d.keywords[key] = true, true
			members = append(members, quote(key)+":"+text)
		}
	}
	if d.IntN(3) > 0 {
		list := []string{`"null"`, `"boolean"`, `"number"`, `"integer"`, `"string"`, `"array"`, `"object"`, `"array"`, `"object"`}
		if one := choice(d.Rand, list); d.IntN(3) > 0 {
			add("type", one)
		} else if other := choice(d.Rand, list); other != one {
			add("type", "["+one+","+other+"]")
		}
	}
	for range 1 + d.IntN(2) {
		g := choice(d.Rand, groups)
		if g.nested && depth <= 0 || g.drafts != "" && !strings.Contains(g.drafts, d.draft) {
			continue
		}
		for _, k := range g.keywords {
			if len(g.keywords) == 1 || d.IntN(2) == 0 {
				add(k.name, k.draw(d, depth))
			}
		}
	}
	for _, bound := range []string{"Minimum", "Maximum"} {
		if d.draft == "4" && has[strings.ToLower(bound)] {
			add("exclusive"+bound, choice(d.Rand, []string{"true", "false"}))
		}
	}
	d.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// whole is a schema with what it refers to.
func (d *drawing) whole() string {
	d.draft = choice(d.Rand, []string{"2020", "2020", "2020", "7", "4"})
	d.defs, d.keywords = 0, map[string]bool{}
	var defs []string
	for i := range d.IntN(3) {
		d.within = true
		text := d.object(1)
		if d.within = false; d.IntN(3) == 0 { // one that may hold itself
			text = fmt.Sprintf(`{"anyOf":[%s,{"type":"array","items":{"$ref":"#/definitions/d%d"}}]}`, text, i)
		}
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, text))
	}
	d.defs = len(defs)
	text := d.object(2 + d.IntN(2))
	head := map[string]string{"2020": "https://json-schema.org/draft/2020-12/schema", "7": "http://json-schema.org/draft-07/schema#", "4": "http://json-schema.org/draft-04/schema#"}[d.draft]
	return fmt.Sprintf(`{"$schema":%q,"definitions":{%s},"allOf":[%s]}`, head, strings.Join(defs, ","), text)
}
