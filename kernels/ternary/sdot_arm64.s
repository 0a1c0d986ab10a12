//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"
#include "sdot_arm64.h"

// trit r%3 of r < 27
DATA ·tritTables+0(SB)/8, $0x00ff0100ff0100ff
DATA ·tritTables+8(SB)/8, $0xff0100ff0100ff01
DATA ·tritTables+16(SB)/8, $0x0100ff0100ff0100
DATA ·tritTables+24(SB)/8, $0x00000000000100ff
// trit r/3%3 of r < 27
DATA ·tritTables+32(SB)/8, $0x0101000000ffffff
DATA ·tritTables+40(SB)/8, $0x01000000ffffff01
DATA ·tritTables+48(SB)/8, $0x000000ffffff0101
DATA ·tritTables+56(SB)/8, $0x0000000000010101
// trit r/9 of r < 27
DATA ·tritTables+64(SB)/8, $0xffffffffffffffff
DATA ·tritTables+72(SB)/8, $0x00000000000000ff
DATA ·tritTables+80(SB)/8, $0x0101010101010000
DATA ·tritTables+88(SB)/8, $0x0000000000010101
GLOBL ·tritTables(SB), RODATA|NOPTR, $96

// trits of the low and of the high bit pair of a nibble
DATA ·bitPairTables+0(SB)/8, $0x000100ff000100ff
DATA ·bitPairTables+8(SB)/8, $0x000100ff000100ff
DATA ·bitPairTables+16(SB)/8, $0x00000000ffffffff
DATA ·bitPairTables+24(SB)/8, $0x0000000001010101
GLOBL ·bitPairTables(SB), RODATA|NOPTR, $32

// A token's sums of 64 rows take 256 bytes. The sums of 4 rows and T tokens
// stand in T registers side by side.

// func sdotI1x1(sums *int32, w, act *byte, blocks int)
// sums[1][64] of the first 64 rows at w = Σ of blocks of act[blocks][5][1][4].
// Needs FEAT_DotProd; blocks is positive. Exact up to 2^24 columns.
TEXT ·sdotI1x1(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	I1TABLES
	ZERO
block:
	VLD1.P 16(R2), [V16.B16]
	FMOVS.P 4(R2), F17
	PRFM 2048(R1), PLDL1STRM
	I1X1(0)
	I1X1(1)
	I1X1(2)
	I1X1(3)
	I1X1(4)
	I1X1(5)
	I1X1(6)
	I1X1(7)
	I1X1(8)
	I1X1(9)
	I1X1(10)
	I1X1(11)
	I1X1(12)
	I1X1(13)
	I1X1(14)
	I1X1(15)
	SUBS $1, R3, R3
	BNE block
	FMOVQ F0, 0(R0)
	FMOVQ F1, 16(R0)
	FMOVQ F2, 32(R0)
	FMOVQ F3, 48(R0)
	FMOVQ F4, 64(R0)
	FMOVQ F5, 80(R0)
	FMOVQ F6, 96(R0)
	FMOVQ F7, 112(R0)
	FMOVQ F8, 128(R0)
	FMOVQ F9, 144(R0)
	FMOVQ F10, 160(R0)
	FMOVQ F11, 176(R0)
	FMOVQ F12, 192(R0)
	FMOVQ F13, 208(R0)
	FMOVQ F14, 224(R0)
	FMOVQ F15, 240(R0)
	RET

// func sdotI1x2(sums *int32, w, act *byte, blocks int)
// sums[2][64] of the first 32 rows at w = Σ of blocks of act[blocks][5][2][4].
// Needs FEAT_DotProd; blocks is positive. Exact up to 2^24 columns.
TEXT ·sdotI1x2(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	I1TABLES
	ZERO
block:
	VLD1.P 32(R2), [V16.B16, V17.B16]
	FMOVD.P 8(R2), F18
	I1X2(0)
	I1X2(2)
	I1X2(4)
	I1X2(6)
	I1X2(8)
	I1X2(10)
	I1X2(12)
	I1X2(14)
	ADD $(128), R1
	SUBS $1, R3, R3
	BNE block
	FMOVQ F0, 0(R0)
	FMOVQ F1, 256(R0)
	FMOVQ F2, 16(R0)
	FMOVQ F3, 272(R0)
	FMOVQ F4, 32(R0)
	FMOVQ F5, 288(R0)
	FMOVQ F6, 48(R0)
	FMOVQ F7, 304(R0)
	FMOVQ F8, 64(R0)
	FMOVQ F9, 320(R0)
	FMOVQ F10, 80(R0)
	FMOVQ F11, 336(R0)
	FMOVQ F12, 96(R0)
	FMOVQ F13, 352(R0)
	FMOVQ F14, 112(R0)
	FMOVQ F15, 368(R0)
	RET

// func sdotI1x4(sums *int32, w, act *byte, blocks int)
// sums[4][64] of the first 16 rows at w = Σ of blocks of act[blocks][5][4][4].
// Needs FEAT_DotProd; blocks is positive. Exact up to 2^24 columns.
TEXT ·sdotI1x4(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	I1TABLES
	ZERO
block:
	VLD1.P 64(R2), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 16(R2), [V20.B16]
	I1X4(0)
	I1X4(4)
	I1X4(8)
	I1X4(12)
	ADD $(192), R1
	SUBS $1, R3, R3
	BNE block
	FMOVQ F0, 0(R0)
	FMOVQ F1, 256(R0)
	FMOVQ F2, 512(R0)
	FMOVQ F3, 768(R0)
	FMOVQ F4, 16(R0)
	FMOVQ F5, 272(R0)
	FMOVQ F6, 528(R0)
	FMOVQ F7, 784(R0)
	FMOVQ F8, 32(R0)
	FMOVQ F9, 288(R0)
	FMOVQ F10, 544(R0)
	FMOVQ F11, 800(R0)
	FMOVQ F12, 48(R0)
	FMOVQ F13, 304(R0)
	FMOVQ F14, 560(R0)
	FMOVQ F15, 816(R0)
	RET

// func sdotI2x1(sums *int32, w, act *byte, blocks int)
// sums[1][64] of the first 64 rows at w = Σ of blocks of act[blocks][4][1][4].
// Needs FEAT_DotProd; blocks is positive. Exact up to 2^24 columns.
TEXT ·sdotI2x1(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	I2TABLES
	ZERO
block:
	VLD1.P 16(R2), [V16.B16]
	PRFM 2048(R1), PLDL1STRM
	I2X1(0)
	I2X1(1)
	I2X1(2)
	I2X1(3)
	I2X1(4)
	I2X1(5)
	I2X1(6)
	I2X1(7)
	I2X1(8)
	I2X1(9)
	I2X1(10)
	I2X1(11)
	I2X1(12)
	I2X1(13)
	I2X1(14)
	I2X1(15)
	SUBS $1, R3, R3
	BNE block
	FMOVQ F0, 0(R0)
	FMOVQ F1, 16(R0)
	FMOVQ F2, 32(R0)
	FMOVQ F3, 48(R0)
	FMOVQ F4, 64(R0)
	FMOVQ F5, 80(R0)
	FMOVQ F6, 96(R0)
	FMOVQ F7, 112(R0)
	FMOVQ F8, 128(R0)
	FMOVQ F9, 144(R0)
	FMOVQ F10, 160(R0)
	FMOVQ F11, 176(R0)
	FMOVQ F12, 192(R0)
	FMOVQ F13, 208(R0)
	FMOVQ F14, 224(R0)
	FMOVQ F15, 240(R0)
	RET

// func sdotI2x2(sums *int32, w, act *byte, blocks int)
// sums[2][64] of the first 32 rows at w = Σ of blocks of act[blocks][4][2][4].
// Needs FEAT_DotProd; blocks is positive. Exact up to 2^24 columns.
TEXT ·sdotI2x2(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	I2TABLES
	ZERO
block:
	VLD1.P 32(R2), [V16.B16, V17.B16]
	I2X2(0)
	I2X2(2)
	I2X2(4)
	I2X2(6)
	I2X2(8)
	I2X2(10)
	I2X2(12)
	I2X2(14)
	ADD $(128), R1
	SUBS $1, R3, R3
	BNE block
	FMOVQ F0, 0(R0)
	FMOVQ F1, 256(R0)
	FMOVQ F2, 16(R0)
	FMOVQ F3, 272(R0)
	FMOVQ F4, 32(R0)
	FMOVQ F5, 288(R0)
	FMOVQ F6, 48(R0)
	FMOVQ F7, 304(R0)
	FMOVQ F8, 64(R0)
	FMOVQ F9, 320(R0)
	FMOVQ F10, 80(R0)
	FMOVQ F11, 336(R0)
	FMOVQ F12, 96(R0)
	FMOVQ F13, 352(R0)
	FMOVQ F14, 112(R0)
	FMOVQ F15, 368(R0)
	RET

// func sdotI2x4(sums *int32, w, act *byte, blocks int)
// sums[4][64] of the first 16 rows at w = Σ of blocks of act[blocks][4][4][4].
// Needs FEAT_DotProd; blocks is positive. Exact up to 2^24 columns.
TEXT ·sdotI2x4(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	I2TABLES
	ZERO
block:
	VLD1.P 64(R2), [V16.B16, V17.B16, V18.B16, V19.B16]
	I2X4(0)
	I2X4(4)
	I2X4(8)
	I2X4(12)
	ADD $(192), R1
	SUBS $1, R3, R3
	BNE block
	FMOVQ F0, 0(R0)
	FMOVQ F1, 256(R0)
	FMOVQ F2, 512(R0)
	FMOVQ F3, 768(R0)
	FMOVQ F4, 16(R0)
	FMOVQ F5, 272(R0)
	FMOVQ F6, 528(R0)
	FMOVQ F7, 784(R0)
	FMOVQ F8, 32(R0)
	FMOVQ F9, 288(R0)
	FMOVQ F10, 544(R0)
	FMOVQ F11, 800(R0)
	FMOVQ F12, 48(R0)
	FMOVQ F13, 304(R0)
	FMOVQ F14, 560(R0)
	FMOVQ F15, 816(R0)
	RET

// func ternaryFinishNEON(y *float32, sums *int32, scale float32, rows *float32)
// y[64] = float32(sums) · (scale · rows), each product rounded.
TEXT ·ternaryFinishNEON(SB), NOSPLIT, $0-32
	MOVD y+0(FP), R0
	MOVD sums+8(FP), R1
	FMOVS scale+16(FP), F16
	MOVD rows+24(FP), R2
	MOVD $4, R3
finish:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R2), [V4.S4, V5.S4, V6.S4, V7.S4]
	SCVTF(0, 0)
	SCVTF(1, 1)
	SCVTF(2, 2)
	SCVTF(3, 3)
	FMULL(4, 4, 16, 0)
	FMULL(5, 5, 16, 0)
	FMULL(6, 6, 16, 0)
	FMULL(7, 7, 16, 0)
	FMUL(0, 0, 4)
	FMUL(1, 1, 5)
	FMUL(2, 2, 6)
	FMUL(3, 3, 7)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS $1, R3, R3
	BNE finish
	RET
