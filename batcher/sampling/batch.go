package sampling

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels/pool"
)

// Batch holds the draws of one step. Rows of logits are sampled in parallel; draws
// from one row are sampled one after the other, so that what they share is
// computed once. It keeps its memory between steps.
type Batch struct {
	pool    *pool.Pool // nil: one row after the other
	draws   []Draw
	firsts  []int // the first draw from each row that has one
	lasts   []int // for each row: its last draw so far, plus one; 0: none
	workers []Sampler
}

// NewBatch makes a batch that samples on pool, which may be nil.
func NewBatch(pool *pool.Pool) *Batch {
	b := &Batch{pool: pool, workers: make([]Sampler, 1)}
	if pool != nil {
		b.workers = make([]Sampler, pool.Threads())
	}
	return b
}

// Reset removes all draws; those to come are from that many rows.
func (b *Batch) Reset(rows int) {
	b.draws, b.firsts = b.draws[:0], b.firsts[:0]
	b.lasts = slices.Grow(b.lasts[:0], rows)[:rows]
	clear(b.lasts)
}

// Len returns the number of draws.
func (b *Batch) Len() int { return len(b.draws) }

// At returns draw i, in the order in which they were added. It is valid until the next Add.
func (b *Batch) At(i int) *Draw { return &b.draws[i] }

// Add adds a draw from a row, after the others from that row. The caller fills
// it; what it holds alongside the row is left from an earlier step.
func (b *Batch) Add(row int, logits []float32) *Draw {
	n := len(b.draws)
	b.draws = slices.Grow(b.draws, 1)[:n+1]
	if last := b.lasts[row] - 1; last >= 0 {
		b.draws[last].next = n
	} else {
		b.firsts = append(b.firsts, n)
	}
	b.lasts[row] = n + 1
	d := &b.draws[n]
	d.Row, d.next, d.Vocab, d.Err = logits, 0, 0, nil
	return d
}

// Run fills Token or Err of every draw.
func (b *Batch) Run() {
	if b.pool != nil {
		b.pool.Run((*rows)(b), len(b.firsts))
		return
	}
	for i := range b.firsts {
		(*rows)(b).Do(0, i)
	}
}

// rows is a Batch as a worker pool runs it.
type rows Batch

// Do runs the draws from one row.
func (b *rows) Do(worker, i int) {
	s, d := &b.workers[worker], &b.draws[b.firsts[i]]
	d.shared = d.next > 0
	s.Run(d)
	for d.next > 0 {
		d = &b.draws[d.next]
		d.shared = true
		s.again(d)
	}
}
