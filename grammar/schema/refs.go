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

// walk notes the identifiers within v.
func (r *references) walk(v *value, base *url.URL) {
	for _, item := range v.items {
		r.walk(item, base)
	}
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
	for i := range v.members {
		r.walk(v.members[i].value, base)
	}
}

// bare is u without its fragment.
func bare(u *url.URL) string {
	b := *u
	b.Fragment, b.RawFragment = "", ""
	return b.String()
}

// find is the schema that ref names within from.
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
	}
	return v, nil
}
