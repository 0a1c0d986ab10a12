package batcher

import "slices"

// lookup drafts the tokens that followed the last ones where they stood before, in prompt or completion (Saxena 2023,
// "Prompt Lookup Decoding"). It guesses text well that is quoted, corrected or continued in its own pattern.
//
// The tables hold, for each length of context, where a context with that hash ended last. A wrong entry does no harm,
// because contexts are compared.
type lookup struct {
	seen   int // tokens in the tables, but for those replaced since
	tables [longContext - shortContext + 1][]int32
}

// The tokens of contexts; longer ones are preferred.
const (
	shortContext = 2
	longContext  = 4
)

// Slots of a table: twice the tokens, within these bounds.
const (
	fewSlots  = 1 << 7
	mostSlots = 1 << 14
)

// NewLookup makes a drafter that looks back.
func NewLookup() Drafter { return lookups{} }

// lookups keeps a lookup of each sequence.
type lookups struct{}

func (lookups) Kind() DraftKind          { return DraftLookup }
func (lookups) Price(_ []*Guess) float64 { return 0 }

func (lookups) Draft(guesses []*Guess, _ float64) error {
	for _, g := range guesses {
		l, ok := g.Notes.(*lookup)
		if !ok {
			l = new(lookup)
			g.Notes = l
		}
		g.Tokens = l.draft(g.Tokens, g.Text, g.Most)
	}
	return nil
}

// Close has nothing to free.
func (*lookup) Close() {}

// draft appends to dst up to k tokens that may follow tokens.
func (l *lookup) draft(dst, tokens []int32, k int) []int32 {
	n := len(tokens)
	l.learn(tokens)
	for c := longContext; c >= shortContext; c-- {
		if n <= c {
			continue
		}
		t := l.tables[c-shortContext]
		at := int(t[slot(tokens[n-c:], len(t))])
		if at < c || at >= n || !slices.Equal(tokens[at-c:at], tokens[n-c:]) {
			continue
		}
		for i := range k { // beyond the end the pattern repeats
			if at+i < n {
				dst = append(dst, tokens[at+i])
			} else {
				dst = append(dst, dst[len(dst)-(n-at)])
			}
		}
		break
	}
	return dst
}

// learn enters the contexts that something follows.
func (l *lookup) learn(tokens []int32) {
	n := len(tokens)
	if size := len(l.tables[0]); size == 0 || size < mostSlots && 2*n > size {
		for size = max(size, fewSlots); size < mostSlots && size < 3*n; {
			size *= 2
		}
		for i := range l.tables {
			l.tables[i] = make([]int32, size)
		}
		l.seen = 0
	}
	for end := min(l.seen, n-1); end < n; end++ {
		for c := shortContext; c <= min(longContext, end); c++ {
			t := l.tables[c-shortContext]
			t[slot(tokens[end-c:end], len(t))] = int32(end)
		}
	}
	l.seen = n
}

// slot returns the place of a context in a table, whose size is a power of two.
func slot(context []int32, size int) int {
	h := uint64(0)
	for _, t := range context {
		h = (h + uint64(uint32(t)) + 1) * 0x9e3779b97f4a7c15
	}
	return int(h>>40) & (size - 1)
}
