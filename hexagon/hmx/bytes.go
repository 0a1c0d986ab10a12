package hmx

import "github.com/lutra-lm/lutra/hexagon/hmx/tiles"

// Tiles of bytes: codes have ByteRows rows of 32 columns, one row after the other; activations
// have LanesBytes, in the order of LaneIndex. A sum's lowest bytes leave the unit in Planes planes
// in the order of codes.
const (
	ByteRows   = 64
	LanesBytes = 32 * 32
	Planes     = 3

	planeBytes = ByteRows * tiles.Side // of a tile of codes too
)

// LaneIndex returns the place of column k of a lane in a tile of activations: four columns
// stand together.
func LaneIndex(k, lane int) int { return k/4*128 + 4*lane + k%4 }

// bytes are the operands of MulBytes.
type bytes struct {
	out, act, wgt []byte
	k, cols       int
}

// exactTiles tiles of k are summed in float32: 512·255·128 is less than 2²⁴.
const exactTiles = 16

// MulBytes computes out [rows][cols][Planes] planes of the sums of act [rows][k], uint8, by wgt
// [cols][k], int8. Sums that do not fit the planes wrap.
func (u *Unit) MulBytes(out, act, wgt []byte, k, rows, cols int) {
	u.bytes = bytes{out, act, wgt, k, cols}
	if len(u.wide) == 0 {
		u.wide = append(u.wide, nil)
	}
	if n := cols * k * tile; cap(u.wide[0]) < n {
		u.wide[0] = make([]float32, n)
	} else {
		u.wide[0] = u.wide[0][:n]
	}
	u.run(wideningBytes, (cols*k+widenPart-1)/widenPart)
	u.run(multiplyingBytes, rows)
	u.bytes = bytes{}
}

// widenBytes converts tiles [from, to) of activations to rows of float32.
func (u *Unit) widenBytes(from, to int) {
	for t := from; t < min(to, u.bytes.cols*u.bytes.k); t++ {
		dst, src := (*[tile]float32)(u.wide[0][t*tile:]), (*[LanesBytes]byte)(u.bytes.wgt[t*LanesBytes:])
		for k := 0; k < tiles.Side; k += 4 {
			in, rows := src[k*tiles.Side:][:4*tiles.Side], dst[k*tiles.Side:][:4*tiles.Side]
			for lane := range tiles.Side {
				rows[lane] = float32(int8(in[4*lane]))
				rows[tiles.Side+lane] = float32(int8(in[4*lane+1]))
				rows[2*tiles.Side+lane] = float32(int8(in[4*lane+2]))
				rows[3*tiles.Side+lane] = float32(int8(in[4*lane+3]))
			}
		}
	}
}

// byteRow computes a row of the output's tiles, 32 rows of numbers after the other.
func (u *Unit) byteRow(s *scratch, r int) {
	b := &u.bytes
	n := b.k * tile
	if len(s.act) < n {
		s.act = make([]float32, n)
	}
	for half := range ByteRows / tiles.Side {
		for t := range b.k {
			src := b.act[(r*b.k+t)*planeBytes+half*tile:][:tile]
			dst := (*[tile]float32)(s.act[t*tile:])
			for row := 0; row < tiles.Side; row += 2 {
				in, pair := src[row*tiles.Side:][:2*tiles.Side], dst[row*tiles.Side:][:2*tiles.Side]
				for k := range tiles.Side {
					pair[2*k], pair[2*k+1] = float32(in[k]), float32(in[tiles.Side+k])
				}
			}
		}
		for c := range b.cols {
			var sums [tile]int32
			for from := 0; from < b.k; from += exactTiles {
				to := min(from+exactTiles, b.k)
				s.acc = tiles.Sums{}
				s.acc.Multiply(s.act[from*tile:to*tile], u.wide[0][(c*b.k+from)*tile:(c*b.k+to)*tile], tiles.Side)
				for i, f := range s.acc {
					sums[i] += int32(f)
				}
			}
			planes := b.out[(r*b.cols+c)*Planes*planeBytes:]
			for p := range Planes {
				plane := planes[p*planeBytes+half*tile:][:tile]
				for i, sum := range sums {
					plane[i] = byte(sum >> (8 * p))
				}
			}
		}
	}
}
