//go:build arm64 && !purego

package dense

// The assembly of dense_arm64.s, which states each routine's contract.

//go:noescape
func denseF32NEONx1(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseF32NEONx2(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseF32NEONx3(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseF32NEONx4(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseF16NEONx1(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseF16NEONx2(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseF16NEONx3(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseF16NEONx4(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseBF16NEONx1(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseBF16NEONx2(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseBF16NEONx3(y *float32, ld int, w *byte, x *float32, ldx, k int)

//go:noescape
func denseBF16NEONx4(y *float32, ld int, w *byte, x *float32, ldx, k int)
