package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func listFilter(r *renderer, v any, _ args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	return &List{Items: slices.Clone(items)}, nil
}

func itemsFilter(r *renderer, v any, _ args) (any, error) {
	switch v := v.(type) {
	case *Dict:
		return r.pairs(v)
	case undefined:
		return NewList(), nil
	}
	return nil, fmt.Errorf("only a mapping has item pairs, not %s", kindName(v))
}

// pairs returns the list of a mapping's entries.
func (r *renderer) pairs(d *Dict) (any, error) {
	if err := r.charge(entryBytes * d.Len()); err != nil {
		return nil, err
	}
	return &List{Items: d.pairs()}, nil
}

func firstFilter(r *renderer, v any, _ args) (any, error) {
	items, err := r.items(v)
	if err != nil || len(items) == 0 {
		return undefined{"the first item of nothing"}, err
	}
	return items[0], nil
}

func lastFilter(r *renderer, v any, _ args) (any, error) {
	items, err := r.items(v)
	if err != nil || len(items) == 0 {
		return undefined{"the last item of nothing"}, err
	}
	return items[len(items)-1], nil
}

func reverseFilter(r *renderer, v any, _ args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(string); ok {
		return r.joinItems(&List{Items: items}, "")
	}
	return &List{Items: items}, nil
}

func joinFilter(r *renderer, v any, a args) (any, error) {
	sep, err := r.str(a.get(0, "d", ""))
	if err != nil {
		return nil, err
	}
	if attr := a.get(1, "attribute", nil); attr != nil {
		if v, err = mapFilter(r, v, args{named: map[string]any{"attribute": attr}}); err != nil {
			return nil, err
		}
	}
	return r.joinItems(v, sep)
}

// joinItems returns the items of v as text with sep between them.
func (r *renderer) joinItems(v any, sep string) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	for i, item := range items {
		if parts[i], err = r.str(item); err != nil {
			return nil, err
		}
		if err := r.charge(len(parts[i]) + len(sep)); err != nil {
			return nil, err
		}
	}
	return strings.Join(parts, sep), nil
}

// path returns v.a.b.c, where numbers are indices.
func (r *renderer) path(v any, name any) (any, error) {
	dotted, ok := name.(string)
	if !ok {
		return r.item(v, name)
	}
	if err := r.charge(len(dotted)); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(dotted, ".") {
		var key any = part
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			key = n
		}
		if err := r.step(); err != nil {
			return nil, err
		}
		var err error
		if v, err = r.item(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// mapFilter applies a filter to each item, or takes an attribute of each.
func mapFilter(r *renderer, v any, a args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	attr, byAttr := a.named["attribute"]
	out := make([]any, len(items))
	for i, item := range items {
		if err := r.step(); err != nil {
			return nil, err
		}
		if byAttr {
			out[i], err = r.path(item, attr)
			if _, missing := out[i].(undefined); missing {
				out[i] = a.get(len(a.pos), "default", out[i])
			}
		} else {
			var name string
			if name, err = a.str(0, ""); err == nil {
				out[i], err = r.filter(name, item, args{a.pos[1:], a.names, a.named})
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return &List{Items: out}, nil
}

// selector makes select, reject, selectattr and rejectattr.
func selector(byAttr, keep bool) filterFunc {
	return func(r *renderer, v any, a args) (any, error) {
		items, err := r.charged(v)
		if err != nil {
			return nil, err
		}
		rest := a.pos
		var attr any
		if byAttr {
			if len(rest) == 0 {
				return nil, fmt.Errorf("an attribute is missing")
			}
			attr, rest = rest[0], rest[1:]
		}
		name := ""
		if len(rest) > 0 {
			if name, err = (args{pos: rest}).str(0, ""); err != nil {
				return nil, err
			}
			rest = rest[1:]
		}
		out := NewList()
		for _, item := range items {
			if err := r.step(); err != nil {
				return nil, err
			}
			tested := item
			if byAttr {
				if tested, err = r.path(item, attr); err != nil {
					return nil, err
				}
			}
			ok := truth(tested)
			if name != "" {
				if ok, err = r.test(name, tested, args{pos: rest}); err != nil {
					return nil, err
				}
			}
			if ok == keep {
				out.Items = append(out.Items, item)
			}
		}
		return out, nil
	}
}

func sumFilter(r *renderer, v any, a args) (any, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	attr := a.get(0, "attribute", nil)
	total := a.get(1, "start", int64(0))
	for _, item := range items {
		if attr != nil {
			if item, err = r.path(item, attr); err != nil {
				return nil, err
			}
		}
		if err := r.step(); err != nil {
			return nil, err
		}
		if total, err = r.binary("+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}
