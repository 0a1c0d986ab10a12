package jinja

import (
	"fmt"
	"slices"
	"strings"
)

// sortKey returns what v sorts by: its attribute, without regard to case.
func sortKey(r *resources, v, attr any, caseSensitive bool) (any, error) {
	if attr != nil {
		var err error
		if v, err = pathOf(r, v, attr); err != nil {
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

// sortBy returns a copy of items in the order of their keys.
func sortBy(r *resources, items []any, reverse bool, key func(any) (any, error)) ([]any, error) {
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
		c, err := order(r, a.key, b.key, 0)
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

func sortFilter(r *resources, v any, a args) (any, error) {
	items, err := paidItems(r, v)
	if err != nil {
		return nil, err
	}
	attr, exact := a.get(2, "attribute", nil), truth(a.get(1, "case_sensitive", false))
	out, err := sortBy(r, items, truth(a.get(0, "reverse", false)), func(item any) (any, error) {
		return sortKey(r, item, attr, exact)
	})
	return &List{Items: out}, err
}

func dictSortFilter(r *resources, v any, a args) (any, error) {
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
	out, err := sortBy(r, d.pairs(), truth(a.get(2, "reverse", false)), func(item any) (any, error) {
		return sortKey(r, item, at, exact)
	})
	return &List{Items: out}, err
}

func uniqueFilter(r *resources, v any, a args) (any, error) {
	items, err := paidItems(r, v)
	if err != nil {
		return nil, err
	}
	attr, exact := a.get(1, "attribute", nil), truth(a.get(0, "case_sensitive", false))
	seen, out := NewList(), NewList()
	for _, item := range items {
		k, err := sortKey(r, item, attr, exact)
		if err != nil {
			return nil, err
		}
		dup, err := contains(r, seen, k)
		if err != nil {
			return nil, err
		}
		if !dup {
			seen.Items, out.Items = append(seen.Items, k), append(out.Items, item)
		}
	}
	return out, nil
}

// extreme makes max (direction 1) and min (-1).
func extreme(direction int) filterFunc {
	return func(r *resources, v any, a args) (any, error) {
		items, err := itemsOf(r, v)
		if err != nil || len(items) == 0 {
			return undefined{"the extreme of nothing"}, err
		}
		attr, exact := a.get(1, "attribute", nil), truth(a.get(0, "case_sensitive", false))
		best := items[0]
		bestKey, err := sortKey(r, best, attr, exact)
		if err != nil {
			return nil, err
		}
		for _, item := range items[1:] {
			k, err := sortKey(r, item, attr, exact)
			if err != nil {
				return nil, err
			}
			c, err := order(r, k, bestKey, 0)
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
