//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Vector lookup (Vec-LUT §3): a table row is the int16 sums of 8 tokens, one
// register.

// func lutBuildNEON(tables *int16, act *int8, trits, base, groups int)
// tables[groups][rows][8] from act[groups][trits][8]: row Σ (w+1)·base^j holds Σ w·act[j].
// The rows of j trits become those of j+1 by subtracting, keeping and adding
// the next activation (Vec-LUT §4); between those of base 4 are some that no
// byte names. A table ends with the row of all digits 2. trits and groups are positive.
TEXT ·lutBuildNEON(SB), NOSPLIT, $0-40
	MOVD tables+0(FP), R0
	MOVD act+8(FP), R1
	MOVD trits+16(FP), R2
	MOVD base+24(FP), R11
	MOVD groups+32(FP), R3
group:
	VEOR V0.B16, V0.B16, V0.B16
	VST1 [V0.H8], (R0)
	MOVD $1, R4  // place of the next trit: base^j
	MOVD $1, R10 // rows so far
	MOVD R2, R5
trit:
	FMOVD.P 8(R1), F1
	SXTL_H8(1, 1)
	MOVD R0, R6
	ADD  R4<<4, R0, R7
	ADD  R4<<4, R7, R8
	MOVD R10, R9
row:
	VLD1 (R6), [V2.H8]
	VSUB V1.H8, V2.H8, V3.H8
	VADD V1.H8, V2.H8, V4.H8
	VST1.P [V3.H8], 16(R6)
	VST1.P [V2.H8], 16(R7)
	VST1.P [V4.H8], 16(R8)
	SUBS $1, R9, R9
	BNE  row
	ADD  R4<<1, R10, R10
	MADD R11, ZR, R4, R4
	SUBS $1, R5, R5
	BNE  trit
	MOVD R8, R0
	SUBS $1, R3, R3
	BNE  group
	RET

// func lutAddNEON(acc, tables *int16, w *byte, table int)
// acc[64][8] += for each of 64 rows the 4 table rows its bytes w[64][4] name;
// table is the bytes of one of the 4 tables.
TEXT ·lutAddNEON(SB), NOSPLIT, $0-32
	MOVD acc+0(FP), R0
	MOVD tables+8(FP), R1
	MOVD w+16(FP), R2
	MOVD table+24(FP), R3
	ADD  R3, R1, R4
	ADD  R3, R4, R5
	ADD  R3, R5, R6
	MOVD $32, R3
pair: // of rows: 8 bytes of weights
	MOVD.P 8(R2), R7
	UBFX $0, R7, $8, R8
	UBFX $8, R7, $8, R9
	UBFX $16, R7, $8, R10
	UBFX $24, R7, $8, R11
	ADD  R8<<4, R1, R8
	ADD  R9<<4, R4, R9
	ADD  R10<<4, R5, R10
	ADD  R11<<4, R6, R11
	VLD1 (R0), [V0.H8, V1.H8]
	VLD1 (R8), [V2.H8]
	VLD1 (R9), [V3.H8]
	VLD1 (R10), [V4.H8]
	VLD1 (R11), [V5.H8]
	UBFX $32, R7, $8, R8
	UBFX $40, R7, $8, R9
	UBFX $48, R7, $8, R10
	LSR  $56, R7, R11
	ADD  R8<<4, R1, R8
	ADD  R9<<4, R4, R9
	ADD  R10<<4, R5, R10
	ADD  R11<<4, R6, R11
	VLD1 (R8), [V16.H8]
	VLD1 (R9), [V17.H8]
	VLD1 (R10), [V18.H8]
	VLD1 (R11), [V19.H8]
	VADD V2.H8, V3.H8, V2.H8
	VADD V4.H8, V5.H8, V4.H8
	VADD V16.H8, V17.H8, V16.H8
	VADD V18.H8, V19.H8, V18.H8
	VADD V2.H8, V0.H8, V0.H8
	VADD V16.H8, V1.H8, V1.H8
	VADD V4.H8, V0.H8, V0.H8
	VADD V18.H8, V1.H8, V1.H8
	VST1.P [V0.H8, V1.H8], 32(R0)
	SUBS $1, R3, R3
	BNE  pair
	RET

// One row of lutAdd2NEON: its four bytes are those of R7 from bit on, its sums a and b.
#define LOOK(bit, a, b) \
	UBFX $(bit), R7, $8, R8 \
	UBFX $(bit+8), R7, $8, R9 \
	UBFX $(bit+16), R7, $8, R10 \
	UBFX $(bit+24), R7, $8, R11 \
	ADD  R8<<4, R1, R8 \
	ADD  R9<<4, R4, R9 \
	ADD  R10<<4, R5, R10 \
	ADD  R11<<4, R6, R11 \
	FMOVQ (R8), F16; FMOVQ 15616(R8), F20 \
	FMOVQ (R9), F17; FMOVQ 15616(R9), F21 \
	FMOVQ (R10), F18; FMOVQ 15616(R10), F22 \
	FMOVQ (R11), F19; FMOVQ 15616(R11), F23 \
	VADD V16.H8, V17.H8, V16.H8 \
	VADD V20.H8, V21.H8, V20.H8 \
	VADD V18.H8, V19.H8, V18.H8 \
	VADD V22.H8, V23.H8, V22.H8 \
	VADD V16.H8, a.H8, a.H8 \
	VADD V20.H8, b.H8, b.H8 \
	VADD V18.H8, a.H8, a.H8 \
	VADD V22.H8, b.H8, b.H8

// func lutAdd2NEON(acc, more, tables *int16, w *byte, table int)
// As lutAddNEON, for 8 more tokens too: their tables stand 15616 bytes behind, their sums
// at more[64][8].
TEXT ·lutAdd2NEON(SB), NOSPLIT, $0-40
	MOVD acc+0(FP), R0
	MOVD more+8(FP), R12
	MOVD tables+16(FP), R1
	MOVD w+24(FP), R2
	MOVD table+32(FP), R3
	ADD  R3, R1, R4
	ADD  R3, R4, R5
	ADD  R3, R5, R6
	MOVD $32, R3
pair: // of rows
	MOVD.P 8(R2), R7
	VLD1 (R0), [V0.H8, V1.H8]
	VLD1 (R12), [V2.H8, V3.H8]
	LOOK(0, V0, V2)
	LOOK(32, V1, V3)
	VST1.P [V0.H8, V1.H8], 32(R0)
	VST1.P [V2.H8, V3.H8], 32(R12)
	SUBS $1, R3, R3
	BNE  pair
	RET

// func lutWidenNEON(sums *int32, acc *int16, rows int)
// sums[rows][8] += acc[rows][8]; acc = 0. rows is positive.
TEXT ·lutWidenNEON(SB), NOSPLIT, $0-24
	MOVD sums+0(FP), R0
	MOVD acc+8(FP), R1
	MOVD rows+16(FP), R2
	VEOR V3.B16, V3.B16, V3.B16
widen:
	VLD1 (R0), [V0.S4, V1.S4]
	VLD1 (R1), [V2.H8]
	SADDW(0, 0, 2)
	SADDW2(1, 1, 2)
	VST1.P [V3.H8], 16(R1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $1, R2, R2
	BNE  widen
	RET

// Four rows of four tokens: registers a.. hold tokens × rows r.., scaled by the
// tokens' scales t and the rows' lanes of V16, then written rows-together.
#define SCALED(v, t, row) \
	SCVTF(v, v) \
	FMULL(20, t, 16, row) \
	FMUL(v, v, 20)

#define TRANSPOSE(a, b, c, d) \
	RRR(0x4e802800, 20, a, b) \
	RRR(0x4e806800, 21, a, b) \
	RRR(0x4e802800, 22, c, d) \
	RRR(0x4e806800, 23, c, d) \
	RRR(0x4ec02800, a, 20, 22) \
	RRR(0x4ec02800, b, 21, 23) \
	RRR(0x4ec06800, c, 20, 22) \
	RRR(0x4ec06800, d, 21, 23)

// func lutFinishNEON(y *float32, ld int, sums *int32, scale, rows *float32)
// y[8][64 of ld] = float32(sums[64][8]) · (scale[8] · rows[64]), each product rounded.
TEXT ·lutFinishNEON(SB), NOSPLIT, $0-40
	MOVD y+0(FP), R0
	MOVD ld+8(FP), R1
	LSL  $2, R1, R1
	MOVD sums+16(FP), R2
	MOVD scale+24(FP), R3
	VLD1 (R3), [V18.S4, V19.S4]
	MOVD rows+32(FP), R3
	MOVD $16, R4
rows4:
	VLD1.P 64(R2), [V0.S4, V1.S4, V2.S4, V3.S4] // row 0 tokens 0-3, 4-7, row 1 ...
	VLD1.P 64(R2), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1.P 16(R3), [V16.S4]
	SCALED(0, 18, 0)
	SCALED(2, 18, 1)
	SCALED(4, 18, 2)
	SCALED(6, 18, 3)
	SCALED(1, 19, 0)
	SCALED(3, 19, 1)
	SCALED(5, 19, 2)
	SCALED(7, 19, 3)
	TRANSPOSE(0, 2, 4, 6)
	TRANSPOSE(1, 3, 5, 7)
	MOVD R0, R5
	VST1 [V0.S4], (R5)
	ADD  R1, R5, R5
	VST1 [V2.S4], (R5)
	ADD  R1, R5, R5
	VST1 [V4.S4], (R5)
	ADD  R1, R5, R5
	VST1 [V6.S4], (R5)
	ADD  R1, R5, R5
	VST1 [V1.S4], (R5)
	ADD  R1, R5, R5
	VST1 [V3.S4], (R5)
	ADD  R1, R5, R5
	VST1 [V5.S4], (R5)
	ADD  R1, R5, R5
	VST1 [V7.S4], (R5)
	ADD  $16, R0, R0
	SUBS $1, R4, R4
	BNE  rows4
	RET
