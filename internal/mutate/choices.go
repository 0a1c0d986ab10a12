package mutate

import "math/rand/v2"

// Choices says which changes are made. A fuzzer's bytes choose until they are used up, and what
// follows from them alone chooses then.
type Choices struct {
	bytes []byte
	rest  *rand.Rand
}

// New makes choices of bytes.
func New(bytes []byte) *Choices {
	sum := uint64(14695981039346656037) // FNV-1a
	for _, b := range bytes {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return &Choices{bytes, rand.New(rand.NewPCG(sum, 1))}
}

// Below chooses a number from 0 to n-1, of at most 65536; 0 where n is less than one.
func (c *Choices) Below(n int) int {
	switch {
	case n <= 1:
		return 0
	case len(c.bytes) < 2:
		return c.rest.IntN(n)
	}
	v := int(c.bytes[0]) | int(c.bytes[1])<<8
	c.bytes = c.bytes[2:]
	return v % n
}

// one tells, one time in n.
func (c *Choices) one(n int) bool { return c.Below(n) == 0 }

// pick chooses an element.
func pick[T any](c *Choices, of ...T) T { return of[c.Below(len(of))] }

// times makes one to four changes, mostly one.
func (c *Choices) times(change func()) {
	for n := 1 + c.Below(3)*c.Below(3)*c.Below(2); n > 0; n-- {
		change()
	}
}

// number chooses what may stand in a number's place.
func (c *Choices) number(was int64) int64 {
	switch c.Below(4) {
	case 0:
		return was + pick[int64](c, -1, 1)
	case 1:
		return pick(c, was*2, was/2, -was, was*3, was<<32|was)
	case 2:
		return int64(c.Below(20))
	}
	return pick[int64](c, 0, 0, -1, 1<<16, 1<<20, 1<<30, 1<<31-1, 1<<31, 1<<32, 1<<40, 1<<62, -1<<31, -1<<63, 1<<63-1)
}
