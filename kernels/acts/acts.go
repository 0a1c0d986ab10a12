// Package acts makes activations ready for multiplication: rows of float32 and
// the quantised forms of them that products read.
package acts

//go:generate go -C ../_gen run . -family acts -pkg acts -out ../acts/asm_amd64.s -stubs ../acts/asm_amd64.go
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../acts

import "github.com/lutra-lm/lutra/kernels/pool"

// Rows is a batch of activation rows x[n][k] made ready for multiplication.
// Quantised forms are built when the first product wants them and shared by all
// matrices that read the same input (q,k,v; gate,up). Rows are reused from step to
// step; Set drops what was built and keeps the memory. They are not safe for
// concurrent use.
type Rows struct {
	n, k   int
	x      []float32
	codes  Codes          // int8 with one scale a row, in the layouts the ternary kernels read
	groups [limits]Groups // int8 with one scale each 32 columns, for packings with scales along K
	sums   *sums          // of columns, for matrices with offsets; nil: none were asked for
	sets   uint64         // calls of Set and Gather
	pinned bool           // to worker
	worker int
	gather gathering
}

// Pin makes the products of these rows run on the calling goroutine alone, in
// the name of one worker of the backend's pool. It serves tasks that divide rows,
// not matrices, among the workers. Products of rows that are pinned to
// different workers may run at the same time. Results do not depend on it.
func (a *Rows) Pin(worker int) { a.pinned, a.worker = true, worker }

// Pinned reports whether products run on one worker.
func (a *Rows) Pinned() bool { return a.pinned }

// Worker returns the worker that rows are pinned to.
func (a *Rows) Worker() int { return a.worker }

// Run executes t for these rows: on p, or in the worker they are pinned to.
func (a *Rows) Run(p *pool.Pool, t pool.Task, parts int) {
	if !a.pinned {
		p.Run(t, parts)
		return
	}
	for i := range parts {
		t.Do(a.worker, i)
	}
}

// Threads returns the number of workers that Run's parts are divided among.
func (a *Rows) Threads(p *pool.Pool) int {
	if a.pinned {
		return 1
	}
	return p.Threads()
}

// Set makes x[n][k] the current rows. x is read until the next Set and must
// not change while any product uses it.
func (a *Rows) Set(x []float32, n, k int) {
	if len(x) < n*k {
		panic("kernels: Acts.Set: fewer values than n*k")
	}
	a.n, a.k, a.x = n, k, x[:n*k]
	a.gather.from = nil
	a.reset()
}

// reset drops what was built.
func (a *Rows) reset() {
	a.sets++
	a.codes.reset()
	for i := range a.groups {
		a.groups[i].reset()
	}
}

// Sets returns the number of calls of Set and Gather: while it stays the same, so do the rows.
func (a *Rows) Sets() uint64 { return a.sets }

// N returns the number of rows (tokens).
func (a *Rows) N() int { return a.n }

// K returns the length of a row.
func (a *Rows) K() int { return a.k }

// Row returns row i as set. Of rows that were gathered MakeRows comes first.
func (a *Rows) Row(i int) []float32 { return a.x[i*a.k : (i+1)*a.k] }
