package schema

// apart reports whether no value can have a shape of both.
func apart(c *solver, a, b alternatives) bool {
	for _, x := range a {
		for _, y := range b {
			if c.spend(1+(x.size()+y.size())/16) != nil {
				return false
			}
			if s := x.and(y); s != nil && !impossible(c, s, 3) {
				return false
			}
		}
	}
	return true
}

// impossible reports whether it is plain that no value has the shape.
func impossible(c *solver, s *shape, depth int) bool {
	possible := s.types
	if s.enum != nil {
		possible = 0
		for _, v := range s.enum {
			if v.kind != strs || c.allows(s, v.text) {
				possible |= v.kind
			}
		}
	}
	if possible&objects != 0 && depth > 0 {
		for _, name := range s.required {
			if c.spend(len(s.parts)) != nil {
				return false
			}
			if contradictory(c, demanded(c.arena, s, name), depth-1) {
				possible &^= objects
				break
			}
		}
	}
	if possible&arrays != 0 && depth > 0 && s.fewest > 0 && contradictory(c, s.item(0), depth-1) {
		possible &^= arrays
	}
	return possible == 0
}

// contradictory reports whether it is plain that no value meets all schemas.
func contradictory(c *solver, s subs, depth int) bool {
	if c.spend(8) != nil {
		return false
	}
	w, err := c.all(s)
	if err != nil {
		return false
	}
	for _, s := range w {
		if !impossible(c, s, depth) {
			return false
		}
	}
	return true
}
