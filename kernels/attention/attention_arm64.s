//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"
#include "widen_arm64.h"

// One block of keys for one to four query rows of a head. groups and d are positive.

// func scoresF16x1(dst *float32, ld int, q *float32, k *byte, groups, d int)
// dst[1 of ld][8·groups] = q[1][d] · k[groups][d][8].
TEXT ·scoresF16x1(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD q+16(FP), R10
	MOVD k+24(FP), R3
	MOVD groups+32(FP), R4
	MOVD d+40(FP), R5
group:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	MOVD R5, R9
columns:
	HALVES
	FMOVS.P 4(R10), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	SUBS $1, R9, R9
	BNE columns
	MOVD R0, R8
	VST1 [V4.S4, V5.S4], (R8)
	SUB R5<<2, R10
	ADD $32, R0
	SUBS $1, R4, R4
	BNE group
	RET

// func scoresF16x2(dst *float32, ld int, q *float32, k *byte, groups, d int)
// dst[2 of ld][8·groups] = q[2][d] · k[groups][d][8].
TEXT ·scoresF16x2(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD ld+8(FP), R1
	MOVD q+16(FP), R10
	MOVD k+24(FP), R3
	MOVD groups+32(FP), R4
	MOVD d+40(FP), R5
	ADD R5<<2, R10, R6
	LSL $2, R1, R1
group:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	MOVD R5, R9
columns:
	HALVES
	FMOVS.P 4(R10), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	FMOVS.P 4(R6), F17
	FMLAL(8, 0, 17, 0)
	FMLAL(9, 1, 17, 0)
	SUBS $1, R9, R9
	BNE columns
	MOVD R0, R8
	VST1 [V4.S4, V5.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R10
	VST1 [V8.S4, V9.S4], (R8)
	SUB R5<<2, R6
	ADD $32, R0
	SUBS $1, R4, R4
	BNE group
	RET

// func scoresF16x4(dst *float32, ld int, q *float32, k *byte, groups, d int)
// dst[4 of ld][8·groups] = q[4][d] · k[groups][d][8].
TEXT ·scoresF16x4(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD ld+8(FP), R1
	MOVD q+16(FP), R10
	MOVD k+24(FP), R3
	MOVD groups+32(FP), R4
	MOVD d+40(FP), R5
	ADD R5<<2, R10, R6
	ADD R5<<2, R6, R11
	ADD R5<<2, R11, R13
	LSL $2, R1, R1
group:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	VEOR V20.B16, V20.B16, V20.B16
	VEOR V21.B16, V21.B16, V21.B16
	VEOR V22.B16, V22.B16, V22.B16
	VEOR V23.B16, V23.B16, V23.B16
	MOVD R5, R9
columns:
	HALVES
	FMOVS.P 4(R10), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	FMOVS.P 4(R6), F17
	FMLAL(8, 0, 17, 0)
	FMLAL(9, 1, 17, 0)
	FMOVS.P 4(R11), F18
	FMLAL(20, 0, 18, 0)
	FMLAL(21, 1, 18, 0)
	FMOVS.P 4(R13), F19
	FMLAL(22, 0, 19, 0)
	FMLAL(23, 1, 19, 0)
	SUBS $1, R9, R9
	BNE columns
	MOVD R0, R8
	VST1 [V4.S4, V5.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R10
	VST1 [V8.S4, V9.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R6
	VST1 [V20.S4, V21.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R11
	VST1 [V22.S4, V23.S4], (R8)
	SUB R5<<2, R13
	ADD $32, R0
	SUBS $1, R4, R4
	BNE group
	RET

// func scoresQ8x1(dst *float32, ld int, q *float32, k *byte, scale *float32, groups, d int)
// dst[1 of ld][8·groups] = q[1][d] · k[groups][d][8] · scale[8·groups].
TEXT ·scoresQ8x1(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD q+16(FP), R10
	MOVD k+24(FP), R3
	MOVD scale+32(FP), R7
	MOVD groups+40(FP), R4
	MOVD d+48(FP), R5
group:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	MOVD R5, R9
columns:
	CODES
	FMOVS.P 4(R10), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	SUBS $1, R9, R9
	BNE columns
	VLD1.P 32(R7), [V2.S4, V3.S4]
	FMUL(4, 4, 2)
	FMUL(5, 5, 3)
	MOVD R0, R8
	VST1 [V4.S4, V5.S4], (R8)
	SUB R5<<2, R10
	ADD $32, R0
	SUBS $1, R4, R4
	BNE group
	RET

// func scoresQ8x2(dst *float32, ld int, q *float32, k *byte, scale *float32, groups, d int)
// dst[2 of ld][8·groups] = q[2][d] · k[groups][d][8] · scale[8·groups].
TEXT ·scoresQ8x2(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD ld+8(FP), R1
	MOVD q+16(FP), R10
	MOVD k+24(FP), R3
	MOVD scale+32(FP), R7
	MOVD groups+40(FP), R4
	MOVD d+48(FP), R5
	ADD R5<<2, R10, R6
	LSL $2, R1, R1
group:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	MOVD R5, R9
columns:
	CODES
	FMOVS.P 4(R10), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	FMOVS.P 4(R6), F17
	FMLAL(8, 0, 17, 0)
	FMLAL(9, 1, 17, 0)
	SUBS $1, R9, R9
	BNE columns
	VLD1.P 32(R7), [V2.S4, V3.S4]
	FMUL(4, 4, 2)
	FMUL(5, 5, 3)
	FMUL(8, 8, 2)
	FMUL(9, 9, 3)
	MOVD R0, R8
	VST1 [V4.S4, V5.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R10
	VST1 [V8.S4, V9.S4], (R8)
	SUB R5<<2, R6
	ADD $32, R0
	SUBS $1, R4, R4
	BNE group
	RET

// func scoresQ8x4(dst *float32, ld int, q *float32, k *byte, scale *float32, groups, d int)
// dst[4 of ld][8·groups] = q[4][d] · k[groups][d][8] · scale[8·groups].
TEXT ·scoresQ8x4(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD ld+8(FP), R1
	MOVD q+16(FP), R10
	MOVD k+24(FP), R3
	MOVD scale+32(FP), R7
	MOVD groups+40(FP), R4
	MOVD d+48(FP), R5
	ADD R5<<2, R10, R6
	ADD R5<<2, R6, R11
	ADD R5<<2, R11, R13
	LSL $2, R1, R1
group:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	VEOR V20.B16, V20.B16, V20.B16
	VEOR V21.B16, V21.B16, V21.B16
	VEOR V22.B16, V22.B16, V22.B16
	VEOR V23.B16, V23.B16, V23.B16
	MOVD R5, R9
columns:
	CODES
	FMOVS.P 4(R10), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	FMOVS.P 4(R6), F17
	FMLAL(8, 0, 17, 0)
	FMLAL(9, 1, 17, 0)
	FMOVS.P 4(R11), F18
	FMLAL(20, 0, 18, 0)
	FMLAL(21, 1, 18, 0)
	FMOVS.P 4(R13), F19
	FMLAL(22, 0, 19, 0)
	FMLAL(23, 1, 19, 0)
	SUBS $1, R9, R9
	BNE columns
	VLD1.P 32(R7), [V2.S4, V3.S4]
	FMUL(4, 4, 2)
	FMUL(5, 5, 3)
	FMUL(8, 8, 2)
	FMUL(9, 9, 3)
	FMUL(20, 20, 2)
	FMUL(21, 21, 3)
	FMUL(22, 22, 2)
	FMUL(23, 23, 3)
	MOVD R0, R8
	VST1 [V4.S4, V5.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R10
	VST1 [V8.S4, V9.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R6
	VST1 [V20.S4, V21.S4], (R8)
	ADD R1, R8
	SUB R5<<2, R11
	VST1 [V22.S4, V23.S4], (R8)
	SUB R5<<2, R13
	ADD $32, R0
	SUBS $1, R4, R4
	BNE group
	RET
