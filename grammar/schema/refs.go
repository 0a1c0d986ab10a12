package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// references finds schemas by the names that $ref has for them.
type references struct {
	root    *value
	bases   map[*value]*url.URL // of objects, where it is not their parent's
	ids     map[string]*value
	anchors map[string]*value
}

func newReferences(root *value) *references {
	r := &references{root: root, bases: map[*value]*url.URL{}, ids: map[string]*value{}, anchors: map[string]*value{}}
	base := &url.URL{}
	r.ids[""] = root
	r.walk(root, base)
	return r
}

// legacy reports whether the schema says that it is of draft 4, 6 or 7.
func (r *references) legacy() bool {
	s := r.root.get("$schema")
	return s != nil && strings.HasPrefix(strings.TrimPrefix(s.text, "http://json-schema.org/"), "draft-0")
}

// holds says where keywords have schemas. What stands elsewhere, as in enum, const,
// default or keywords that nobody knows, only looks like one.
var holds = map[string]holding{
	"not": oneSchema, "if": oneSchema, "then": oneSchema, "else": oneSchema, "contains": oneSchema, "propertyNames": oneSchema, "additionalProperties": oneSchema,
	"unevaluatedProperties": oneSchema, "unevaluatedItems": oneSchema, "additionalItems": oneSchema, "contentSchema": oneSchema,
	"items": oneSchema | schemaList, "allOf": schemaList, "anyOf": schemaList, "oneOf": schemaList, "prefixItems": schemaList,
	"properties": schemaMap, "patternProperties": schemaMap, "$defs": schemaMap, "definitions": schemaMap, "dependentSchemas": schemaMap, "dependencies": schemaMap,
}

// holding says how a keyword has schemas.
type holding uint8

const (
	oneSchema holding = 1 << iota
	schemaList
	schemaMap
)

// within returns the schemas that a keyword of this value has.
func (h holding) within(x *value) []*value {
	switch {
	case h&schemaList != 0 && x.kind == arrays:
		return x.items
	case h&schemaMap != 0 && x.kind == objects:
		all := make([]*value, len(x.members))
		for i, m := range x.members {
			all[i] = m.value
		}
		return all
	case h&oneSchema != 0:
		return []*value{x}
	}
	return nil
}

// walk notes the identifiers within a schema.
func (r *references) walk(v *value, base *url.URL) {
	if v.kind != objects {
		return
	}
	legacy := r.legacy() // where $ref stands, nothing else counts
	for _, key := range []string{"$id", "id"} {
		if id := v.get(key); id != nil && id.kind == strs && !(legacy && v.get("$ref") != nil) {
			if u, err := base.Parse(id.text); err == nil {
				if u.Fragment != "" {
					r.anchors[bare(u)+"#"+u.Fragment] = v
				} else {
					base = u
					if _, ok := r.ids[bare(u)]; !ok || v == r.root {
						r.ids[bare(u)] = v
					}
				}
			}
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.get(key); a != nil && a.kind == strs {
			r.anchors[bare(base)+"#"+a.text] = v
		}
	}
	r.bases[v] = base
	for _, m := range v.members {
		for _, s := range holds[m.name].within(m.value) {
			r.walk(s, base)
		}
	}
}

// bare returns u without its fragment.
func bare(u *url.URL) string {
	b := *u
	b.Fragment, b.RawFragment = "", ""
	return b.String()
}

// find returns the schema that ref names within from.
func (r *references) find(from *value, ref string) (*value, error) {
	base := r.bases[from]
	u, err := base.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("$ref: %q is no reference", ref)
	}
	doc, ok := r.ids[bare(u)]
	if !ok {
		return nil, fmt.Errorf("$ref: %q is not in this schema, and others are not fetched", ref)
	}
	if u.Fragment == "" {
		return doc, nil
	}
	if !strings.HasPrefix(u.Fragment, "/") {
		if v := r.anchors[bare(u)+"#"+u.Fragment]; v != nil {
			return v, nil
		}
		return nil, fmt.Errorf("$ref: there is no anchor %q", ref)
	}
	v := doc
	base = r.bases[doc]
	for _, step := range strings.Split(u.Fragment[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		next := v.get(step)
		if i, err := strconv.Atoi(step); err == nil && v.kind == arrays && i >= 0 && i < len(v.items) {
			next = v.items[i]
		}
		if next == nil {
			return nil, fmt.Errorf("$ref: there is nothing at %q", ref)
		}
		v = next
		if b := r.bases[v]; b != nil {
			base = b
		}
	}
	if r.bases[v] == nil { // it stands where no schema does, and is one all the same
		r.walk(v, base)
	}
	return v, nil
}
