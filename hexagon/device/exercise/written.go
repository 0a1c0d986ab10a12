package exercise

import (
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Written says where a packet that Check takes may write: offsets and sizes, scratch included.
func Written(p device.Packet) (of [][2]int) {
	n := func(i int) int { return int(p.Args[i]) }
	switch p.Op {
	case device.OpCopy:
		return [][2]int{{n(0), n(2)}}
	case device.OpCollect:
		return [][2]int{{n(0), n(2) * n(5)}}
	case device.OpPrecompute:
		size, stride := device.TableBytes(n(3), n(4) == 1), device.TableStride(n(3), n(4) == 1)
		for i := range n(1) { // what aligns sums is nobody's
			of = append(of, [2]int{n(0) + i*stride, size + n(3)/8})
		}
		return of
	case device.OpGEMV:
		return append(Scratch(p), [2]int{n(0), 4 * n(3) * n(6)})
	case device.OpDequant:
		return [][2]int{{n(0), p.DequantStrips() * n(7) * 8 * layout.TileBytes}}
	case device.OpVLUT16:
		return [][2]int{{n(0), n(2) * 512}}
	case device.OpTileMul:
		return append(Scratch(p), [2]int{n(0), n(7) * n(8) * layout.TileBytes})
	case device.OpByteTiles:
		return [][2]int{{n(0), n(2) * 4 * layout.TileBytes}}
	case device.OpTileMulBytes:
		return append(Scratch(p), [2]int{n(0), n(4) * n(5) * device.BytePlanes * layout.TileBytes})
	case device.OpExpTable:
		return [][2]int{{n(0), device.ExpTableBytes}}
	case device.OpSoftmax:
		return [][2]int{{n(0), n(4) * n(5) * layout.TileBytes}, {n(2), n(4) * 32 * device.StateBytes}, {n(3), n(4) * layout.TileBytes}}
	default:
		return writtenRows(p, n)
	}
}

// writtenRows says it of operations on rows.
func writtenRows(p device.Packet, n func(int) int) [][2]int {
	switch p.Op {
	case device.OpRMSNorm:
		return [][2]int{{n(0), (n(3)-1)*n(6) + 4*n(4)*n(5)}}
	case device.OpQuantize:
		return [][2]int{{n(0), 2 * n(3) * n(4)}, {n(1), 4 * n(3)}}
	case device.OpScale:
		return [][2]int{{n(0), (n(5)-1)*n(7) + 4*n(6)}}
	case device.OpAdd:
		return [][2]int{{n(0), (n(2)-1)*n(4) + 4*n(3)}}
	case device.OpRope:
		return [][2]int{{n(0), (n(2)-1)*n(7) + 4*n(3)*n(4)}}
	case device.OpGLU:
		return [][2]int{{n(0), (n(3)-1)*n(5) + 4*n(4)}}
	case device.OpToTiles:
		return [][2]int{{n(0), (n(3)-1)*n(6) + n(4)/32*layout.TileBytes}}
	case device.OpFromTiles:
		return [][2]int{{n(0), (n(3)-1)*n(5) + 4*n(4)}, {n(7), 128}}
	case device.OpRowsToTiles:
		return [][2]int{{n(0), 64 * n(4) * ((n(3) + 31) / 32)}, {n(1), 4 * n(3)}}
	case device.OpTilesToRows:
		return [][2]int{{n(0), (n(5)-1)*n(7) + 4*n(6)}}
	case device.OpFold:
		return [][2]int{{n(0), 128}, {n(2), 32 * device.StateBytes}}
	case device.OpSoftCap:
		return [][2]int{{n(0), n(2) * layout.TileBytes}}
	case device.OpMul:
		return [][2]int{{n(0), (n(3)-1)*n(5) + 4*n(4)}}
	case device.OpConv:
		return [][2]int{{n(0), (n(4)-1)*n(6) + 4*n(5)}, {n(3), 4 * (n(8) - 1) * n(5)}}
	case device.OpGates:
		return [][2]int{{n(0), (n(3)-1)*n(5) + 4*n(4)}}
	case device.OpDelta:
		return [][2]int{{n(0), (n(5)-1)*n(9) + 4*n(6)*n(7)*n(8)}, {n(4), 4 * n(6) * n(7) * n(8) * n(8)}}
	case device.OpLayerNorm:
		return [][2]int{{n(0), (n(4)-1)*n(6) + 4*n(5)}}
	}
	return nil
}

// Scratch lists the memory that a valid packet leaves undefined, as offsets and sizes.
func Scratch(p device.Packet) [][2]int {
	n := func(i int) int { return int(p.Args[i]) }
	switch p.Op {
	case device.OpGEMV:
		strips, workers := p.GEMVTiles()
		return [][2]int{{n(12), device.GEMVScratch(n(3), n(6), n(7), n(8), n(9), n(5) != 0, strips, n(14), workers)}}
	case device.OpTileMul:
		return [][2]int{{n(10), device.ColumnsBytes}}
	case device.OpTileMulBytes:
		return [][2]int{{n(6), device.ByteColumnsBytes}}
	}
	return nil
}
