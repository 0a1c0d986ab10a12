package hexagon

import "github.com/lutra-lm/lutra/hexagon/layout"

// launch computes products one after the other in one run, each of as many rows as its
// capacity. Its packets depend on matrices and capacities alone, so that it could be a graph
// that was made before. An error leaves results
// undefined.
func (ps *products) launch(products []product) error {
	x, y := ps.plan.launch.x.at, ps.plan.launch.y.at
	ps.resident, ps.q.spilled = resident{}, spilled{}
	for i := range products {
		p := &products[i]
		p.rows, p.outs = take(&x, p.rowBytes()), take(&y, p.outBytes())
		if p.lookup {
			p.eachTables(ps.queueLookups)
		} else {
			p.eachTiles(ps.queueTiles)
		}
		ps.launched(p)
	}
	ps.resident, ps.q.spilled = resident{}, spilled{}
	if err := ps.s.run(); err != nil {
		return err
	}
	for i := range products {
		p := &products[i]
		if p.n == 0 {
			continue
		}
		if p.lookup {
			p.eachTables(ps.collectLookups)
		} else {
			p.eachTiles(ps.collectTiles)
		}
		if err := ps.s.probe(p); err != nil {
			return err
		}
	}
	return nil
}

// launched counts the rows that a product of a launch computes.
func (ps *products) launched(p *product) {
	if p.lookup {
		ps.q.count(&ps.q.work.Lookups, p.capacity)
		return
	}
	ps.q.count(&ps.q.work.Tiled, p.capacity)
	ps.q.count(&ps.q.work.Lanes, roundUp(p.capacity, layout.Tile))
}

// rowBytes and outBytes are what a product of a launch takes of the shared memory for
// its rows and its results.
func (p *product) rowBytes() int { return rowBytes(p.capacity, p.K) }

func (p *product) outBytes() int {
	if p.lookup {
		return 4 * p.M * p.capacity
	}
	return outBytes(p.capacity, p.M, p.tile(1, 0).parts(p.K))
}

func rowBytes(capacity, k int) int        { return 2 * k * roundUp(capacity, layout.Tile) }
func outBytes(capacity, m, parts int) int { return 2 * m * parts * roundUp(capacity, layout.Tile) }

// parts returns in how many a product's k columns are multiplied.
func (t tiling) parts(k int) int { return (k + t.k - 1) / t.k }

// eachTables calls do with the rows whose tables are in TCM at once: n from row lo on,
// laid out at x, with results at y.
func (p *product) eachTables(do func(p *product, lo, n int, x, y uint32)) {
	most := p.tableRows()
	for lo := 0; lo < p.capacity; lo += most {
		do(p, lo, min(most, p.capacity-lo), p.rows+uint32(2*p.K*lo), p.outs+uint32(4*p.M*lo))
	}
}

func (ps *products) queueLookups(p *product, lo, n int, x, y uint32) {
	ps.precompute(p, lo, n, x)
	for first := 0; first < p.M/layout.Strip; {
		strips := p.summed(first, n)
		p.lookUp(ps.q, first, strips, n, y+uint32(4*n*first*layout.Strip))
		first += strips
	}
}

func (ps *products) collectLookups(p *product, lo, n int, _, y uint32) {
	for first := 0; first < p.M/layout.Strip; {
		strips := p.summed(first, n)
		ps.gatherSums(p, first, strips, lo, max(0, min(n, p.n-lo)), y+uint32(4*n*first*layout.Strip))
		first += strips
	}
}

// eachTiles calls do with the rows that are multiplied at once, and their tiling.
func (p *product) eachTiles(do func(p *product, lo, n int, t *tiling)) {
	for lo := 0; lo < p.capacity; lo += tileRows {
		n := min(tileRows, p.capacity-lo)
		t := p.tile(n, p.outs+uint32(outBytes(lo, p.M, p.tile(1, 0).parts(p.K))))
		do(p, lo, n, &t)
	}
}

// part returns where the results of the part that begins at column c lie.
func (t tiling) part(p *product, c int) tiling {
	t.y += uint32(outBytes(t.cols*layout.Tile, p.M, c/t.k))
	return t
}

func (ps *products) queueTiles(p *product, lo, n int, t *tiling) {
	x := p.rows + uint32(rowBytes(lo, p.K))
	ps.layTiles(p, lo, n, x)
	for c := 0; c < p.K; c += t.k {
		of := t.part(p, c)
		ps.q.loadRows(p, t, x, c, min(t.k, p.K-c))
		of.pipeline(ps.q, p.passes(nil, t, 0, p.M/layout.Strip, nil), c, min(t.k, p.K-c))
	}
}

func (ps *products) collectTiles(p *product, lo, n int, t *tiling) {
	for c := 0; c < p.K; c += t.k {
		of := t.part(p, c)
		ps.gatherTiles(p, lo, min(n, p.n-lo), &of, 0, p.M/layout.Strip, c > 0)
	}
}
