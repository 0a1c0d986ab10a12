package regex

// Exceeds reports whether e matches more than n texts. The arena is frozen.
func (a *Arena) Exceeds(e Expr, n int) bool {
	sizes := make([]int, a.Classes())
	for _, class := range a.classOf {
		sizes[class]++
	}
	found := 0
	for ends := map[Expr]int{e: 1}; len(ends) > 0; { // by the expression that may follow, the texts of one length
		next := map[Expr]int{}
		for e, count := range ends {
			if a.Nullable(e) {
				if found += count; found > n {
					return true
				}
			}
			for class, size := range sizes {
				if d := a.Next(e, class); d != None && a.Alive(d) {
					next[d] = min(next[d]+count*size, n+1)
				}
			}
			if !a.work(len(sizes)) {
				return false
			}
		}
		ends = next
	}
	return false
}
