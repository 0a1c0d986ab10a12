package regex

// HashBucket matches the texts that fall into bucket i of n, by a hash: texts of different
// buckets differ.
func (a *texts) HashBucket(i, n int) Expr {
	a.buckets = true
	return bucketOf(&a.algebra, term{kind: kBucket, a: Expr(i), min: int32(n)})
}

// bucketOf interns the state of a text whose bucket is t.a; t.max is the hash of the text read so
// far.
func bucketOf(a *algebra, t term) Expr {
	f := simple
	if t.max == int32(t.a) {
		f |= nullable
	}
	return a.add(t, f)
}

func hashByte(a *algebra, t term, b byte) Expr {
	t.max = (t.max*5 + int32(b)) % t.min
	return bucketOf(a, t)
}
