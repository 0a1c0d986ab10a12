package jinja

import (
	"fmt"
	"slices"
)

// methodOf returns the method or built-in attribute name of v, if it has one.
func methodOf(r *resources, v any, name string) (any, bool) {
	switch v := v.(type) {
	case string:
		if m, ok := stringMethods[name]; ok {
			return builtin(func(a args) (any, error) {
				if err := r.charge(len(v)); err != nil {
					return nil, err
				}
				return m(r, v, a)
			}), true
		}
	case *List:
		if m, ok := listMethods[name]; ok && !(v.Tuple && listChanges[name]) {
			return builtin(func(a args) (any, error) { return m(r, v, a) }), true
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return builtin(func(a args) (any, error) { return m(r, v, a) }), true
		}
	case *loop:
		return v.attr(name)
	case *macro:
		if name == "name" {
			return v.def.name, true
		}
	}
	return nil, false
}

// listChanges are the methods that tuples lack.
var listChanges = map[string]bool{"append": true, "extend": true, "insert": true, "pop": true, "remove": true, "reverse": true}

var listMethods = map[string]func(r *resources, l *List, a args) (any, error){
	"append": func(r *resources, l *List, a args) (any, error) {
		if err := r.charge(itemBytes); err != nil {
			return nil, err
		}
		l.Items = append(l.Items, a.get(0, "", nil))
		return nil, nil
	},
	"extend": func(r *resources, l *List, a args) (any, error) {
		items, err := paidItems(r, a.get(0, "", nil))
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, items...)
		return nil, nil
	},
	"insert": func(r *resources, l *List, a args) (any, error) {
		i, err := integer(a.get(0, "", nil))
		if err != nil {
			return nil, err
		}
		if i < 0 {
			i += len(l.Items)
		}
		i = min(max(i, 0), len(l.Items))
		if err := r.charge(itemBytes * (len(l.Items) - i + 1)); err != nil {
			return nil, err
		}
		l.Items = slices.Insert(l.Items, i, a.get(1, "", nil))
		return nil, nil
	},
	"pop": func(r *resources, l *List, a args) (any, error) {
		i, err := integer(a.get(0, "", int64(-1)))
		if err != nil {
			return nil, err
		}
		if i < 0 {
			i += len(l.Items)
		}
		if i < 0 || i >= len(l.Items) {
			return nil, fmt.Errorf("pop index out of range")
		}
		if err := r.charge(itemBytes * (len(l.Items) - i)); err != nil {
			return nil, err
		}
		v := l.Items[i]
		l.Items = slices.Delete(l.Items, i, i+1)
		return v, nil
	},
	"remove": func(r *resources, l *List, a args) (any, error) {
		i, err := indexOf(r, l, a.get(0, "", nil))
		if err != nil {
			return nil, err
		}
		if err := r.charge(itemBytes * (len(l.Items) - i)); err != nil {
			return nil, err
		}
		l.Items = slices.Delete(l.Items, i, i+1)
		return nil, nil
	},
	"reverse": func(r *resources, l *List, _ args) (any, error) {
		if err := r.charge(itemBytes * len(l.Items)); err != nil {
			return nil, err
		}
		slices.Reverse(l.Items)
		return nil, nil
	},
	"copy": func(r *resources, l *List, _ args) (any, error) {
		if err := r.charge(itemBytes * len(l.Items)); err != nil {
			return nil, err
		}
		return &List{Items: slices.Clone(l.Items), Tuple: l.Tuple}, nil
	},
	"index": func(r *resources, l *List, a args) (any, error) {
		i, err := indexOf(r, l, a.get(0, "", nil))
		return int64(i), err
	},
	"count": func(r *resources, l *List, a args) (any, error) {
		n := int64(0)
		for _, item := range l.Items {
			same, err := equal(r, item, a.get(0, "", nil), 0)
			if err != nil {
				return nil, err
			}
			n += truthInt(same)
		}
		return n, nil
	},
}

// indexOf returns the index of the first item equal to v.
func indexOf(r *resources, l *List, v any) (int, error) {
	for i, item := range l.Items {
		if same, err := equal(r, item, v, 0); same || err != nil {
			return i, err
		}
	}
	return 0, fmt.Errorf("value is not in the list")
}

var dictMethods = map[string]func(r *resources, d *Dict, a args) (any, error){
	"get": func(r *resources, d *Dict, a args) (any, error) {
		if err := r.key(a.get(0, "", nil)); err != nil {
			return nil, err
		}
		if v, ok := d.Get(a.get(0, "", nil)); ok {
			return v, nil
		}
		return a.get(1, "default", nil), nil
	},
	"items": func(r *resources, d *Dict, _ args) (any, error) { return entryPairs(r, d) },
	"keys": func(r *resources, d *Dict, _ args) (any, error) {
		if err := r.charge(itemBytes * d.Len()); err != nil {
			return nil, err
		}
		return &List{Items: slices.Clone(d.keys)}, nil
	},
	"values": func(r *resources, d *Dict, _ args) (any, error) {
		if err := r.charge(itemBytes * d.Len()); err != nil {
			return nil, err
		}
		return &List{Items: slices.Clone(d.values)}, nil
	},
	"copy": func(r *resources, d *Dict, _ args) (any, error) {
		if err := r.charge(entryBytes * d.Len()); err != nil {
			return nil, err
		}
		return d.clone(), nil
	},
	"update": func(r *resources, d *Dict, a args) (any, error) { return nil, fillDict(r, d, a) },
	"setdefault": func(r *resources, d *Dict, a args) (any, error) {
		key, v := a.get(0, "", nil), a.get(1, "default", nil)
		if err := r.key(key); err != nil {
			return nil, err
		}
		if v, ok := d.Get(key); ok {
			return v, nil
		}
		return v, setEntry(r, d, key, v)
	},
	"pop": func(r *resources, d *Dict, a args) (any, error) {
		if err := r.charge(entryBytes * d.Len()); err != nil {
			return nil, err
		}
		if v, ok := d.remove(a.get(0, "", nil)); ok {
			return v, nil
		}
		if len(a.pos) > 1 {
			return a.pos[1], nil
		}
		return nil, fmt.Errorf("pop of a key that is not there")
	},
}

// fillDict sets in d what dict(...) takes: a mapping or pairs, then names.
func fillDict(r *resources, d *Dict, a args) error {
	if len(a.pos) > 0 {
		if from, ok := a.pos[0].(*Dict); ok {
			entries, err := entryPairs(r, from)
			if err != nil {
				return err
			}
			a.pos = []any{entries}
		}
		pairs, err := itemsOf(r, a.pos[0])
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := r.step(); err != nil {
				return err
			}
			kv, err := itemsOf(r, p)
			if err != nil {
				return err
			}
			if len(kv) != 2 {
				return fmt.Errorf("a mapping is made of pairs")
			}
			if err := setEntry(r, d, kv[0], kv[1]); err != nil {
				return err
			}
		}
	}
	for _, name := range a.names {
		if err := setEntry(r, d, name, a.named[name]); err != nil {
			return err
		}
	}
	return nil
}
