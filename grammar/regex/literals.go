package regex

import "slices"

// Literals matches the bytes of one of texts. Texts share equal beginnings, so that thousands cost little.
func (a *texts) Literals(texts []string) Expr {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return literalsFrom(&a.algebra, slices.Compact(texts), 0)
}

// literalsFrom matches what sorted texts have from byte i on.
func literalsFrom(a *algebra, texts []string, i int) Expr {
	if len(texts) == 1 {
		return a.Literal(texts[0][i:])
	}
	var es []Expr
	if len(texts) > 0 && len(texts[0]) == i {
		es = append(es, Empty)
		texts = texts[1:]
	}
	for len(texts) > 0 && a.err == nil {
		b := texts[0][i]
		n := 1
		for n < len(texts) && texts[n][i] == b {
			n++
		}
		es = append(es, a.seq(a.Byte(b), literalsFrom(a, texts[:n], i+1)))
		texts = texts[n:]
	}
	return a.Or(es...)
}
