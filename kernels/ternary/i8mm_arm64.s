//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"
#include "sdot_arm64.h"

// As the multiply-add kernels of sdot_arm64.h, for fewer tokens than panels want, by SMMLA: 2 rows × 8 columns of weights
// times 8 columns of two tokens, 32 products an instruction. The bytes of a row in two
// blocks, side by side, hold 8 columns for each position of a trit. Activations are
// arranged alike, from the quads of both blocks. A last block without a second one
// stands beside itself, and beside activations of zero.
//
// The sums of 2 rows and 2 tokens are a register, those of 4 rows and 4 tokens four:
// rows 0 and 1 with tokens 0 and 1, then with 2 and 3; rows 2 and 3 likewise.

// Activations of 4 tokens at one position, of a block in a and of the next in b: tokens
// 0 and 1 to a, 2 and 3 to p.
#define BESIDE(a, b, p) ZIP2_S4(p, a, b); ZIP1_S4(a, a, b)

// Weights n of 2 rows times 4 tokens.
#define TIMES(d, n, a, b) SMMLA(d, n, a); SMMLA((d)+1, n, b)

// I2: V16-V19 and V20-V23 activations   V24, V25 tables of trits   V26 mask

#define I2ACTS \
	BESIDE(16, 27, 20) \
	BESIDE(17, 28, 21) \
	BESIDE(18, 29, 22) \
	BESIDE(19, 30, 23)

#define I2ROWS(d, x) \
	USHR(27, x, 4) \
	AND_B16(x, x, 26) \
	TBL(31, 24, x); TIMES(d, 31, 16, 20) \
	TBL(31, 25, x); TIMES(d, 31, 17, 21) \
	TBL(31, 24, 27); TIMES(d, 31, 18, 22) \
	TBL(31, 25, 27); TIMES(d, 31, 19, 23)

#define I2VECTOR(d) \
	VLD1.P 16(R1), [V27.B16] \
	VLD1.P 16(R4), [V28.B16] \
	ZIP1_S4(29, 27, 28) \
	ZIP2_S4(30, 27, 28) \
	I2ROWS(d, 29) \
	I2ROWS((d)+2, 30)

#define I2VECTORS I2VECTOR(0); I2VECTOR(4); I2VECTOR(8); I2VECTOR(12)

// I1: V8-V12 and V13-V17 activations   V18-V23 tables   V24 19, V25 27

#define I1ACTS \
	BESIDE(8, 26, 13) \
	BESIDE(9, 27, 14) \
	BESIDE(10, 28, 15) \
	BESIDE(11, 29, 16) \
	BESIDE(12, 30, 17)

// Of the bytes x, as SPLIT takes them apart.
#define I1ROWS(d, x) \
	UMULL(27, x, 24) \
	UMULL2(28, x, 24) \
	UZP2(27, 27, 28) \
	USHR(27, 27, 1) \
	MLS(x, 27, 25) \
	TBL2(31, 18, x); TIMES(d, 31, 8, 13) \
	TBL2(31, 20, x); TIMES(d, 31, 9, 14) \
	TBL2(31, 22, x); TIMES(d, 31, 10, 15) \
	TBL(31, 18, 27); TIMES(d, 31, 11, 16) \
	TBL(31, 20, 27); TIMES(d, 31, 12, 17)

#define I1VECTOR(d) \
	VLD1.P 16(R1), [V28.B16] \
	VLD1.P 16(R4), [V29.B16] \
	ZIP1_S4(26, 28, 29) \
	ZIP2_S4(30, 28, 29) \
	I1ROWS(d, 26) \
	I1ROWS((d)+2, 30)

#define I1VECTORS I1VECTOR(0); I1VECTOR(4)

// The sums d and following go to those of 4 tokens, 256 bytes apart.
#define STORE(d, at) \
	UZP1_S4(27, d, (d)+2) \
	UZP2_S4(28, d, (d)+2) \
	UZP1_S4(29, (d)+1, (d)+3) \
	UZP2_S4(30, (d)+1, (d)+3) \
	FMOVQ F27, (at)(R0) \
	FMOVQ F28, (256+at)(R0) \
	FMOVQ F29, (512+at)(R0) \
	FMOVQ F30, (768+at)(R0)

// func i8mmI1x4(sums *int32, w, act *byte, blocks int)
// sums[4][64] of the first 8 rows at w = Σ of blocks of act[blocks][5][4][4].
// Needs FEAT_I8MM; blocks is positive. Exact up to 2^24 columns.
TEXT ·i8mmI1x4(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	MOVD $·tritTables(SB), R8
	VLD1.P 64(R8), [V18.B16, V19.B16, V20.B16, V21.B16]
	VLD1 (R8), [V22.B16, V23.B16]
	VMOVI $19, V24.B16
	VMOVI $27, V25.B16
	ZERO
	ADD $256, R1, R4
	SUBS $2, R3, R3
	BLT last
blocks:
	VLD1.P 64(R2), [V8.B16, V9.B16, V10.B16, V11.B16]
	VLD1.P 16(R2), [V12.B16]
	VLD1.P 64(R2), [V26.B16, V27.B16, V28.B16, V29.B16]
	VLD1.P 16(R2), [V30.B16]
	I1ACTS
	I1VECTORS
	ADD $480, R1
	ADD $480, R4
	SUBS $2, R3, R3
	BGE blocks
last:
	ADDS $2, R3, R3
	BEQ end
	VLD1.P 64(R2), [V8.B16, V9.B16, V10.B16, V11.B16]
	VLD1 (R2), [V12.B16]
	VEOR V26.B16, V26.B16, V26.B16
	VEOR V27.B16, V27.B16, V27.B16
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16
	VEOR V30.B16, V30.B16, V30.B16
	I1ACTS
	MOVD R1, R4
	I1VECTORS
end:
	STORE(0, 0)
	STORE(4, 16)
	RET

// func i8mmI2x4(sums *int32, w, act *byte, blocks int)
// sums[4][64] of the first 16 rows at w = Σ of blocks of act[blocks][4][4][4].
// Needs FEAT_I8MM; blocks is positive. Exact up to 2^24 columns.
TEXT ·i8mmI2x4(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD w+8(FP), R1
	MOVD act+16(FP), R2
	MOVD blocks+24(FP), R3
	MOVD $·bitPairTables(SB), R8
	VLD1 (R8), [V24.B16, V25.B16]
	VMOVI $15, V26.B16
	ZERO
	ADD $256, R1, R4
	SUBS $2, R3, R3
	BLT last
blocks:
	VLD1.P 64(R2), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R2), [V27.B16, V28.B16, V29.B16, V30.B16]
	I2ACTS
	I2VECTORS
	ADD $448, R1
	ADD $448, R4
	SUBS $2, R3, R3
	BGE blocks
last:
	ADDS $2, R3, R3
	BEQ end
	VLD1 (R2), [V16.B16, V17.B16, V18.B16, V19.B16]
	VEOR V27.B16, V27.B16, V27.B16
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16
	VEOR V30.B16, V30.B16, V30.B16
	I2ACTS
	MOVD R1, R4
	I2VECTORS
end:
	STORE(0, 0)
	STORE(4, 16)
	STORE(8, 32)
	STORE(12, 48)
	RET
