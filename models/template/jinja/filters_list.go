package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func listFilter(r *resources, v any, _ args) (any, error) {
	items, err := paidItems(r, v)
	if err != nil {
		return nil, err
	}
	return &List{Items: slices.Clone(items)}, nil
}

func itemsFilter(r *resources, v any, _ args) (any, error) {
	switch v := v.(type) {
	case *Dict:
		return entryPairs(r, v)
	case undefined:
		return NewList(), nil
	}
	return nil, fmt.Errorf("only a mapping has item pairs, not %s", kindName(v))
}

// entryPairs returns the list of a mapping's entries.
func entryPairs(r *resources, d *Dict) (any, error) {
	if err := r.charge(entryBytes * d.Len()); err != nil {
		return nil, err
	}
	return &List{Items: d.pairs()}, nil
}

func firstFilter(r *resources, v any, _ args) (any, error) {
	items, err := itemsOf(r, v)
	if err != nil || len(items) == 0 {
		return undefined{"the first item of nothing"}, err
	}
	return items[0], nil
}

func lastFilter(r *resources, v any, _ args) (any, error) {
	items, err := itemsOf(r, v)
	if err != nil || len(items) == 0 {
		return undefined{"the last item of nothing"}, err
	}
	return items[len(items)-1], nil
}

func reverseFilter(r *resources, v any, _ args) (any, error) {
	items, err := paidItems(r, v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(string); ok {
		return joinItems(r, &List{Items: items}, "")
	}
	return &List{Items: items}, nil
}

func joinFilter(r *resources, v any, a args) (any, error) {
	sep, err := toText(r, a.get(0, "d", ""))
	if err != nil {
		return nil, err
	}
	if attr := a.get(1, "attribute", nil); attr != nil {
		if v, err = mapFilter(r, v, args{named: map[string]any{"attribute": attr}}); err != nil {
			return nil, err
		}
	}
	return joinItems(r, v, sep)
}

// joinItems returns the items of v as text with sep between them.
func joinItems(r *resources, v any, sep string) (any, error) {
	items, err := paidItems(r, v)
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	for i, item := range items {
		if parts[i], err = toText(r, item); err != nil {
			return nil, err
		}
		if err := r.charge(len(parts[i]) + len(sep)); err != nil {
			return nil, err
		}
	}
	return strings.Join(parts, sep), nil
}

// pathOf returns v.a.b.c, where numbers are indices.
func pathOf(r *resources, v any, name any) (any, error) {
	dotted, ok := name.(string)
	if !ok {
		return element(r, v, name)
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
		if v, err = element(r, v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// mapFilter applies a filter to each item, or takes an attribute of each.
func mapFilter(r *resources, v any, a args) (any, error) {
	items, err := paidItems(r, v)
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
			out[i], err = pathOf(r, item, attr)
			if _, missing := out[i].(undefined); missing {
				out[i] = a.get(len(a.pos), "default", out[i])
			}
		} else {
			var name string
			if name, err = a.str(0, ""); err == nil {
				out[i], err = applyFilter(r, name, item, args{a.pos[1:], a.names, a.named})
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
	return func(r *resources, v any, a args) (any, error) {
		items, err := paidItems(r, v)
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
				if tested, err = pathOf(r, item, attr); err != nil {
					return nil, err
				}
			}
			ok := truth(tested)
			if name != "" {
				if ok, err = applyTest(r, name, tested, args{pos: rest}); err != nil {
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

func sumFilter(r *resources, v any, a args) (any, error) {
	items, err := itemsOf(r, v)
	if err != nil {
		return nil, err
	}
	attr := a.get(0, "attribute", nil)
	total := a.get(1, "start", int64(0))
	for _, item := range items {
		if attr != nil {
			if item, err = pathOf(r, item, attr); err != nil {
				return nil, err
			}
		}
		if err := r.step(); err != nil {
			return nil, err
		}
		if total, err = binaryOp(r, "+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}
