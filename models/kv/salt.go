package kv

import "crypto/sha256"

// Salt keeps the prefixes of some requests apart from all others: one request cannot learn from the time that it takes
// what another's, of another salt, has had computed. The zero Salt is of requests that share theirs.
type Salt [sha256.Size]byte

// NewSalt makes a salt of a text that its users alone know; an empty one is none.
func NewSalt(text string) Salt {
	if text == "" {
		return Salt{}
	}
	return sha256.Sum256([]byte(text))
}

// MaxRoot bounds the numbers of variants' roots; salted roots have those above.
const MaxRoot = 1 << 30

// salts finds a salted root again for as long as sequences or indexed blocks are of it. Nobody else bounds them: salts
// come from requests.
type salts struct {
	by     map[saltKey]*Root
	number map[int32]*Root // the same ones
	last   int32           // the number given last
}

// saltKey is a root with a salt.
type saltKey struct {
	of   int32 // Root.before
	salt Salt
}

// root returns the root that salt makes of another.
func (x *salts) root(of *Root, salt Salt) *Root {
	if salt == (Salt{}) {
		return of
	}
	key := saltKey{of.before(), salt}
	if r := x.by[key]; r != nil {
		return r
	}
	if x.by == nil {
		x.by, x.number = map[saltKey]*Root{}, map[int32]*Root{}
	}
	for {
		if x.last++; x.last <= MaxRoot { // the first, or past the greatest
			x.last = MaxRoot + 1
		}
		if x.number[x.last] == nil {
			break
		}
	}
	r := &Root{Number: x.last, Salt: salt, key: key}
	if of != nil {
		r.ID, r.Name = of.ID, of.Name
	}
	x.by[key], x.number[r.Number] = r, r
	return r
}

// use counts a user of a root more, or less; roots without a salt are not counted.
func (x *salts) use(r *Root, n int) {
	if r == nil || r.Salt == (Salt{}) {
		return
	}
	if r.users += n; r.users == 0 {
		delete(x.by, r.key)
		delete(x.number, r.Number)
	}
}

// salted returns the salted root of a block whose parent is not a block; nil: it has none.
func (x *salts) salted(parent int32) *Root { return x.number[none-parent] }
