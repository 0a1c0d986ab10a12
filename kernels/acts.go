package kernels

import "github.com/lutra-lm/lutra/kernels/pool"

// Acts is a batch of activation rows x[n][k] made ready for multiplication.
// Quantised forms and tables are built at the first Mul that wants them and
// shared by all matrices that read the same input (q,k,v; gate,up). An Acts is
// reused from step to step; Set drops what was built and keeps the memory.
// It is not safe for concurrent use.
type Acts struct {
	n, k    int
	x       []float32
	ternary ternaryActs // int8 with one scale a token, in the layouts the ternary kernels read
	grouped groupedActs // int8 with one scale each 32 columns, for Q4, Q6 and Q8
	band    bandMul     // the product under way of a band-packed matrix
	stream  streaming   // a product under way that streams
	pinned  bool        // to worker
	worker  int
}

// Pin makes the products of these rows run on the calling goroutine alone, in
// the name of one worker of the backend's pool: for tasks that divide rows,
// not matrices, among the workers. Products of Acts that are pinned to
// different workers may run at the same time. Results do not depend on it.
func (a *Acts) Pin(worker int) { a.pinned, a.worker = true, worker }

// Unpin makes products run on the whole pool again.
func (a *Acts) Unpin() { a.pinned = false }

// run executes t for these rows: on p, or in the worker they are pinned to.
func (a *Acts) run(p *pool.Pool, t pool.Task, parts int) {
	if !a.pinned {
		p.Run(t, parts)
		return
	}
	for i := range parts {
		t.Do(a.worker, i)
	}
}

// threads is the number of workers that run's parts are divided among.
func (a *Acts) threads(p *pool.Pool) int {
	if a.pinned {
		return 1
	}
	return p.Threads()
}

// Set makes x[n][k] the current rows. x is read until the next Set and must
// not change while any Mul uses it.
func (a *Acts) Set(x []float32, n, k int) {
	if len(x) < n*k {
		panic("kernels: Acts.Set: fewer values than n*k")
	}
	a.n, a.k, a.x = n, k, x[:n*k]
	a.ternary.reset()
	a.grouped.reset()
}

// N is the number of rows (tokens).
func (a *Acts) N() int { return a.n }

// K is the length of a row.
func (a *Acts) K() int { return a.k }

// Row is row i as set.
func (a *Acts) Row(i int) []float32 { return a.x[i*a.k : (i+1)*a.k] }
