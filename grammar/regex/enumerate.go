package regex

import "slices"

// Enumerate lists the texts that all of es match, in ascending order, if one of them by
// itself matches no more than most and is seen to without a search.
func (a *Arena) Enumerate(es []Expr, most int) (texts []string, ok bool) {
	for i, e := range es {
		if texts, ok = enumerate(a, e, most); !ok {
			continue
		}
		texts = slices.DeleteFunc(texts, func(text string) bool {
			return slices.ContainsFunc(es, func(k Expr) bool { return k != es[i] && !a.Matches(k, text) })
		})
		slices.Sort(texts)
		return slices.Compact(texts), true
	}
	return nil, false
}

func enumerate(a *Arena, e Expr, most int) ([]string, bool) {
	switch t := a.terms[e]; t.kind {
	case kNone:
		return nil, true
	case kEmpty:
		return []string{""}, true
	case kSet:
		var texts []string
		for b := range 256 {
			if a.sets[t.a].Has(byte(b)) {
				texts = append(texts, string([]byte{byte(b)}))
			}
		}
		return texts, len(texts) <= most
	case kSeq:
		tails, ok := enumerate(a, t.b, most)
		if !ok {
			return nil, false
		}
		heads, ok := enumerate(a, t.a, most)
		if !ok || len(heads)*len(tails) > most {
			return nil, false
		}
		return joined(heads, tails), true
	case kAlt:
		var texts []string
		for _, k := range a.lists[t.a] {
			some, ok := enumerate(a, k, most)
			if texts = append(texts, some...); !ok || len(texts) > most {
				return nil, false
			}
		}
		return texts, true
	case kAnd:
		return a.Enumerate(a.lists[t.a], most)
	case kRepeat:
		if t.max == Infinite || int(t.max) > most {
			return nil, false
		}
		some, ok := enumerate(a, t.a, most)
		if !ok {
			return nil, false
		}
		return times(some, int(t.min), int(t.max), most)
	}
	return nil, false
}

// joined returns each head with each tail behind it.
func joined(heads, tails []string) (texts []string) {
	for _, head := range heads {
		for _, tail := range tails {
			texts = append(texts, head+tail)
		}
	}
	return texts
}

// times returns the texts of lo to hi of some, unless there are more than most.
func times(some []string, lo, hi, most int) (texts []string, ok bool) {
	last := []string{""}
	for n := 0; ; n++ {
		if n >= lo {
			texts = append(texts, last...)
		}
		if len(texts) > most || len(last)*len(some) > most {
			return nil, false
		}
		if n == hi {
			return texts, true
		}
		last = joined(last, some)
	}
}
