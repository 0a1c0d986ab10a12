package kv

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSaltsShareNoBlocks plays a random history of sequences of three salts and none over two roots, whose tokens are of
// two letters: no block is ever of two of them, and what is known of salts is what is in use.
func TestSaltsShareNoBlocks(t *testing.T) {
	c, err := New(tinyShape, Options{Type: F32, BlockLen: 2, Blocks: 24})
	if err != nil {
		t.Fatal(err)
	}
	type owner struct {
		root *Root
		salt Salt
	}
	roots, salts := []*Root{nil, {Number: 1}}, []Salt{{}, NewSalt("a"), NewSalt("b"), NewSalt("c")}
	random := rand.New(rand.NewPCG(1, 2))
	var seqs []*Sequence
	var toks [][]int32
	var owners []owner
	told := told{}
	c.Observe(told)
	of := make([]owner, 24) // of each block, while it is in use
	hits := map[owner]int{}
	drop := func(i int) {
		seqs[i].Release()
		last := len(seqs) - 1
		seqs[i], toks[i], owners[i] = seqs[last], toks[last], owners[last]
		seqs, toks, owners = seqs[:last], toks[:last], owners[:last]
	}
	for range 20000 {
		switch what := random.IntN(4); {
		case what == 0 || len(seqs) == 0:
			prompt := make([]int32, random.IntN(9))
			for i := range prompt {
				prompt[i] = int32(random.IntN(2))
			}
			o := owner{roots[random.IntN(2)], salts[random.IntN(4)]}
			s := c.OpenSalted(o.root, o.salt, prompt)
			hits[o] += s.Len()
			seqs, toks, owners = append(seqs, s), append(toks, prompt[:s.Len():s.Len()]), append(owners, o)
		case what == 1:
			i := random.IntN(len(seqs))
			n := random.IntN(4)
			if seqs[i].Grow(n) != nil {
				drop(i)
				break
			}
			for range n {
				toks[i] = append(toks[i], int32(random.IntN(2)))
			}
			for _, b := range seqs[i].blocks[seqs[i].sealed:] {
				of[b] = owners[i]
			}
			seqs[i].Seal(toks[i])
		case what == 2 && len(seqs) < 8:
			i := random.IntN(len(seqs))
			seqs, toks, owners = append(seqs, seqs[i].Fork()), append(toks, toks[i][:len(toks[i]):len(toks[i])]), append(owners, owners[i])
		default:
			drop(random.IntN(len(seqs)))
		}
		for i, s := range seqs {
			for _, b := range s.blocks {
				if of[b] != owners[i] {
					t.Fatalf("a sequence of %v holds a block of %v", owners[i], of[b])
				}
			}
		}
		if len(seqs) > 0 {
			if err := c.Check(seqs...); err != nil {
				t.Fatal(err)
			}
		}
		for b := range told {
			if of[b].salt != (Salt{}) {
				t.Fatal("an observer was told of a block with a salt")
			}
		}
	}
	for _, root := range roots {
		for _, salt := range salts {
			if hits[owner{root, salt}] == 0 {
				t.Errorf("no sequence of root %v and salt %x found its own blocks", root, salt[:2])
			}
		}
	}
	for len(seqs) > 0 {
		drop(0)
	}
	if c.Forget(); len(c.index.salts.by)+len(c.index.salts.number) != 0 {
		t.Errorf("an empty cache knows %d salts", len(c.index.salts.by))
	}
}

func TestNumbersOfSaltsAreReusedAndNeverOfTwo(t *testing.T) {
	x := salts{last: math.MaxInt32 - 1}
	first := x.root(nil, NewSalt("a"))
	x.use(first, 1)
	second := x.root(nil, NewSalt("b"))
	x.use(second, 1)
	x.last = math.MaxInt32 - 1
	third := x.root(nil, NewSalt("c"))
	if first.Number != math.MaxInt32 || second.Number != MaxRoot+1 || third.Number != MaxRoot+2 {
		t.Errorf("numbers %d, %d, %d", first.Number, second.Number, third.Number)
	}
	if x.root(nil, NewSalt("a")) != first || x.root(&Root{Number: 7}, NewSalt("a")) == first {
		t.Error("a salt has not one root of each other root")
	}
}
