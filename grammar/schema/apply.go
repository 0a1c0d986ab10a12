package schema

import "github.com/lutra-lm/lutra/grammar/regex"

// apply checks a keyword that applies schemas to the value itself, or to the names of its properties.
func (e *evaluation) apply(k keyword, v *value, at *path, m *marks) error {
	switch k.name {
	case "$ref":
		step := application{e.targets[k.of], v}
		if e.under[step] {
			return errItself
		}
		e.under[step] = true
		defer delete(e.under, step)
		return e.also(step.schema, v, at, m)
	case "allOf":
		for _, s := range k.value.items {
			if err := e.also(s, v, at, m); err != nil {
				return err
			}
		}
	case "anyOf":
		return e.some(k, 1, regex.Infinite, v, at, m)
	case "oneOf":
		return e.some(k, 1, 1, v, at, m)
	case "not":
		_, err := e.meets(k.value, v, at)
		switch {
		case err == nil:
			return at.mismatch("it meets what not has")
		case !mismatched(err):
			return err
		}
	case "if":
		return e.choose(k, v, at, m)
	case "dependentRequired", "dependentSchemas", "dependencies":
		return e.depend(k, v, at, m)
	case "propertyNames":
		if v.kind != objects {
			return nil
		}
		for _, member := range v.members {
			if _, err := e.meets(k.value, &value{kind: strs, text: member.name}, at.to(member.name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose checks the schema under then where the one under if is met, or else the one under else.
func (e *evaluation) choose(k keyword, v *value, at *path, m *marks) error {
	err := e.also(k.value, v, at, m)
	next := "then"
	if err != nil {
		if next = "else"; !mismatched(err) {
			return err
		}
	}
	if s := k.of.get(next); s != nil {
		return e.also(s, v, at, m)
	}
	return nil
}

// depend checks what the presence of a property asks for.
func (e *evaluation) depend(k keyword, v *value, at *path, m *marks) error {
	if v.kind != objects {
		return nil
	}
	there, err := e.named(v)
	if err != nil {
		return err
	}
	for _, d := range k.value.members {
		if err := e.budget.Work(1); err != nil {
			return err
		}
		if !there[d.name] {
			continue
		}
		if d.value.kind != arrays {
			if err := e.also(d.value, v, at, m); err != nil {
				return err
			}
			continue
		}
		names, err := texts(k.name, d.value)
		if err == nil {
			err = e.has(v, names, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// some checks that so many of a keyword's schemas are met.
func (e *evaluation) some(k keyword, least, most int, v *value, at *path, m *marks) error {
	met := 0
	var first error
	for _, s := range k.value.items {
		err := e.also(s, v, at, m)
		switch {
		case err == nil:
			met++
		case !mismatched(err):
			return err
		case first == nil:
			first = err
		}
		if met > most && most != regex.Infinite || met >= least && most == regex.Infinite && !e.marks {
			break
		}
	}
	switch {
	case met < least:
		return first
	case met > most && most != regex.Infinite:
		return at.mismatch("it meets %d of %s", met, k.name)
	}
	return nil
}

// unevaluated checks the properties and items that no other keyword of a schema has evaluated.
func (e *evaluation) unevaluated(s, v *value, at *path, m *marks) error {
	if !e.marks || e.legacy {
		return nil
	}
	if x := s.get("unevaluatedProperties"); x != nil && v.kind == objects {
		for _, member := range v.members {
			if m.allNames || m.names[member.name] {
				continue
			}
			if _, err := e.meets(x, member.value, at.to(member.name)); err != nil {
				return err
			}
		}
		m.allNames = true
	}
	if x := s.get("unevaluatedItems"); x != nil && v.kind == arrays {
		for i := m.first; i < len(v.items) && !m.allItems; i++ {
			if m.items[i] {
				continue
			}
			if _, err := e.meets(x, v.items[i], at.item(i)); err != nil {
				return err
			}
		}
		m.allItems = true
	}
	return nil
}
