package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// charged are the items of v, paid for as if copied.
func (r *renderer) charged(v any) ([]any, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	return items, r.charge(itemBytes * len(items))
}

func list(r *renderer, v any, _ args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	return &List{Items: slices.Clone(items)}, nil
}

func items(r *renderer, v any, _ args) (any, error) {
	switch v := v.(type) {
	case *Dict:
		return r.pairs(v)
	case undefined:
		return NewList(), nil
	}
	return nil, fmt.Errorf("only a mapping has item pairs, not %s", kindName(v))
}

// pairs is the list of a mapping's entries.
func (r *renderer) pairs(d *Dict) (any, error) {
	if err := r.charge(entryBytes * d.Len()); err != nil {
		return nil, err
	}
	return &List{Items: d.pairs()}, nil
}

func first(r *renderer, v any, _ args) (any, error) {
	items, err := r.items(v)
	if err != nil || len(items) == 0 {
		return undefined{"the first item of nothing"}, err
	}
	return items[0], nil
}

func last(r *renderer, v any, _ args) (any, error) {
	items, err := r.items(v)
	if err != nil || len(items) == 0 {
		return undefined{"the last item of nothing"}, err
	}
	return items[len(items)-1], nil
}

func reverse(r *renderer, v any, _ args) (any, error) {
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

func join(r *renderer, v any, a args) (any, error) {
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

// joinItems is the items of v as text with sep between them.
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

// path is v.a.b.c, where numbers are indices.
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

// sortKey is what v sorts by: its attribute, without regard to case.
func (r *renderer) sortKey(v, attr any, caseSensitive bool) (any, error) {
	if attr != nil {
		var err error
		if v, err = r.path(v, attr); err != nil {
			return nil, err
		}
	}
	if s, ok := v.(string); ok && !caseSensitive {
		if err := r.chargeTimes(len(s), 4); err != nil {
			return nil, err
		}
		return strings.ToLower(s), nil
	}
	return v, nil
}

// sorted is a copy of items in the order of their keys.
func (r *renderer) sorted(items []any, reverse bool, key func(any) (any, error)) ([]any, error) {
	if err := r.charge(itemBytes * len(items)); err != nil {
		return nil, err
	}
	type keyed struct{ key, item any }
	list := make([]keyed, len(items))
	for i, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		list[i] = keyed{k, item}
	}
	err := mergeSort(list, func(a, b keyed) (int, error) {
		c, err := r.order(a.key, b.key, 0)
		if reverse {
			return -c, err
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i := range list {
		out[i] = list[i].item
	}
	return out, nil
}

// mergeSort sorts list and keeps the order of equals. Unlike package slices it
// ends at the first comparison that fails.
func mergeSort[T any](list []T, order func(a, b T) (int, error)) error {
	if len(list) < 2 {
		return nil
	}
	half := len(list) / 2
	if err := mergeSort(list[:half], order); err != nil {
		return err
	}
	if err := mergeSort(list[half:], order); err != nil {
		return err
	}
	left, right := slices.Clone(list[:half]), list[half:]
	for i := range list {
		if len(left) == 0 {
			return nil // what is left of the right is in place
		}
		c := -1
		if len(right) > 0 {
			var err error
			if c, err = order(left[0], right[0]); err != nil {
				return err
			}
		}
		if c <= 0 {
			list[i], left = left[0], left[1:]
		} else {
			list[i], right = right[0], right[1:]
		}
	}
	return nil
}

func sortFilter(r *renderer, v any, a args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	attr, exact := a.get(2, "attribute", nil), truth(a.get(1, "case_sensitive", false))
	out, err := r.sorted(items, truth(a.get(0, "reverse", false)), func(item any) (any, error) {
		return r.sortKey(item, attr, exact)
	})
	return &List{Items: out}, err
}

func dictSort(r *renderer, v any, a args) (any, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("dictsort needs a mapping, not %s", kindName(v))
	}
	if err := r.charge(entryBytes * d.Len()); err != nil {
		return nil, err
	}
	at := int64(0)
	if a.get(1, "by", "key") == "value" {
		at = 1
	}
	exact := truth(a.get(0, "case_sensitive", false))
	out, err := r.sorted(d.pairs(), truth(a.get(2, "reverse", false)), func(item any) (any, error) {
		return r.sortKey(item, at, exact)
	})
	return &List{Items: out}, err
}

func unique(r *renderer, v any, a args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	attr, exact := a.get(1, "attribute", nil), truth(a.get(0, "case_sensitive", false))
	seen, out := NewList(), NewList()
	for _, item := range items {
		k, err := r.sortKey(item, attr, exact)
		if err != nil {
			return nil, err
		}
		dup, err := r.contains(seen, k)
		if err != nil {
			return nil, err
		}
		if !dup {
			seen.Items, out.Items = append(seen.Items, k), append(out.Items, item)
		}
	}
	return out, nil
}

// groupBy is a list of tuples: an attribute's value and the items that have it.
func groupBy(r *renderer, v any, a args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	attr := a.get(0, "attribute", nil)
	key := func(item any) (any, error) { return r.path(item, attr) }
	if items, err = r.sorted(items, false, key); err != nil {
		return nil, err
	}
	out := NewList()
	var group *List
	var current any
	for _, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		same, err := r.equal(k, current, 0)
		if err != nil {
			return nil, err
		}
		if group == nil || !same {
			group, current = NewList(), k
			out.Items = append(out.Items, &List{Items: []any{k, group}, Tuple: true})
		}
		group.Items = append(group.Items, item)
	}
	return out, nil
}

func batch(r *renderer, v any, a args) (any, error) {
	items, err := r.charged(v)
	if err != nil {
		return nil, err
	}
	n, err := integer(a.get(0, "linecount", nil))
	if err != nil || n <= 0 {
		return nil, fmt.Errorf("batch needs a positive size")
	}
	if err := r.charge(2 * itemBytes * (len(items)/n + 1)); err != nil {
		return nil, err
	}
	out := NewList()
	for part := range slices.Chunk(items, n) {
		out.Items = append(out.Items, &List{Items: slices.Clone(part)})
	}
	return out, nil
}

// extreme makes max (direction 1) and min (-1).
func extreme(direction int) filterFunc {
	return func(r *renderer, v any, a args) (any, error) {
		items, err := r.items(v)
		if err != nil || len(items) == 0 {
			return undefined{"the extreme of nothing"}, err
		}
		attr, exact := a.get(1, "attribute", nil), truth(a.get(0, "case_sensitive", false))
		best := items[0]
		bestKey, err := r.sortKey(best, attr, exact)
		if err != nil {
			return nil, err
		}
		for _, item := range items[1:] {
			k, err := r.sortKey(item, attr, exact)
			if err != nil {
				return nil, err
			}
			c, err := r.order(k, bestKey, 0)
			if err != nil {
				return nil, err
			}
			if c*direction > 0 {
				best, bestKey = item, k
			}
		}
		return best, nil
	}
}

func sum(r *renderer, v any, a args) (any, error) {
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
