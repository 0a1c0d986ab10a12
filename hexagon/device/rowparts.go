package device

import "github.com/lutra-lm/lutra/hexagon/layout"

// byRows says of operations that compute each row by itself which argument has how many there are,
// and by how many bytes operands are further on for each row.
func byRows(p *Packet) (count int, further [3]uint32) {
	switch a := &p.Args; p.Op {
	case OpRMSNorm:
		return 3, [3]uint32{a[6], a[7]}
	case OpLayerNorm:
		return 4, [3]uint32{a[6], a[7]}
	case OpGLU:
		return 3, [3]uint32{a[5], a[6], a[6]}
	case OpRope:
		return 2, [3]uint32{a[7], 8 * a[5]}
	case OpAdd:
		return 2, [3]uint32{a[4], a[5]}
	case OpMul:
		return 3, [3]uint32{a[5], a[6], a[7]}
	case OpGates:
		return 3, [3]uint32{a[5], a[6]}
	case OpRowsToTiles:
		return 3, [3]uint32{2 * a[4], 4, a[6]}
	}
	return 0, further
}

// rowParts is the number of rows in a part for the pool: a column of tiles.
const rowParts = layout.Tile

// eachRowPart calls do, on the pool's threads, with packets of some of p's rows each, or with p.
func (g *Go) eachRowPart(p Packet, do func(p Packet)) {
	count, further := byRows(&p)
	if count == 0 {
		do(p)
		return
	}
	n := p.Args[count]
	g.parallel((int(n)+rowParts-1)/rowParts, func(i int) {
		part, first := p, uint32(i*rowParts)
		for i, bytes := range further {
			part.Args[i] += first * bytes
		}
		part.Args[count] = min(rowParts, n-first)
		do(part)
	})
}
