package qemu

import (
	"math"
	"unsafe"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// tileMul is the tile unit.
func tileMul(memory []byte, p device.Packet) {
	a := p.Args
	rows, cols := int(a[7]), int(a[8])
	tiles := func(at uint32, n int) []uint16 {
		return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(memory[at:][:n*2048]))), n*1024)
	}
	run := func(act, wgt, k int) ref.Run {
		return ref.Run{Act: tiles(a[act], rows*int(a[k])), Wgt: tiles(a[wgt], cols*int(a[k])), K: int(a[k])}
	}
	runs := []ref.Run{run(1, 2, 3)}
	if a[6] > 0 {
		runs = append(runs, run(4, 5, 6))
	}
	ref.TileMul(tiles(a[0], rows*cols), runs, rows, cols, math.Float32frombits(a[9]))
}
