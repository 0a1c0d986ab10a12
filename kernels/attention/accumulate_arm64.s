//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"
#include "widen_arm64.h"

// One block of values for one or two query rows of a head. t is positive, d a positive
// multiple of 8.

// func accumF16x1(acc, p *float32, ld int, v *byte, t, d int)
// acc[1][d] += p[1 of ld][t] · v[t][d], 8 columns at a time.
TEXT ·accumF16x1(SB), NOSPLIT, $0-48
	MOVD acc+0(FP), R0
	MOVD p+8(FP), R10
	MOVD ld+16(FP), R1
	ADD R1<<2, R10, R11
	MOVD v+24(FP), R12
	MOVD t+32(FP), R14
	MOVD d+40(FP), R5
	ADD R5<<2, R0, R1
	MOVD R5, R9
	LSL $1, R5, R15
	SUB $16, R15, R15
columns:
	MOVD R12, R3
	MOVD R10, R2
	MOVD R11, R6
	MOVD R14, R4
	VLD1 (R0), [V4.S4, V5.S4]
value:
	HALVES
	ADD R15, R3 // the next value's columns
	FMOVS.P 4(R2), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	SUBS $1, R4, R4
	BNE value
	VST1.P [V4.S4, V5.S4], 32(R0)
	ADD $16, R12
	SUBS $8, R9, R9
	BNE columns
	RET

// func accumF16x2(acc, p *float32, ld int, v *byte, t, d int)
// acc[2][d] += p[2 of ld][t] · v[t][d], 8 columns at a time.
TEXT ·accumF16x2(SB), NOSPLIT, $0-48
	MOVD acc+0(FP), R0
	MOVD p+8(FP), R10
	MOVD ld+16(FP), R1
	ADD R1<<2, R10, R11
	MOVD v+24(FP), R12
	MOVD t+32(FP), R14
	MOVD d+40(FP), R5
	ADD R5<<2, R0, R1
	MOVD R5, R9
	LSL $1, R5, R15
	SUB $16, R15, R15
columns:
	MOVD R12, R3
	MOVD R10, R2
	MOVD R11, R6
	MOVD R14, R4
	VLD1 (R0), [V4.S4, V5.S4]
	VLD1 (R1), [V8.S4, V9.S4]
value:
	HALVES
	ADD R15, R3 // the next value's columns
	FMOVS.P 4(R2), F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	FMOVS.P 4(R6), F17
	FMLAL(8, 0, 17, 0)
	FMLAL(9, 1, 17, 0)
	SUBS $1, R4, R4
	BNE value
	VST1.P [V4.S4, V5.S4], 32(R0)
	VST1.P [V8.S4, V9.S4], 32(R1)
	ADD $16, R12
	SUBS $8, R9, R9
	BNE columns
	RET

// func accumQ8x1(acc, p *float32, ld int, v *byte, scale *float32, t, d int)
// acc[1][d] += p[1 of ld][t] · scale[t] · v[t][d], 8 columns at a time.
TEXT ·accumQ8x1(SB), NOSPLIT, $0-56
	MOVD acc+0(FP), R0
	MOVD p+8(FP), R10
	MOVD ld+16(FP), R1
	ADD R1<<2, R10, R11
	MOVD v+24(FP), R12
	MOVD scale+32(FP), R13
	MOVD t+40(FP), R14
	MOVD d+48(FP), R5
	ADD R5<<2, R0, R1
	MOVD R5, R9
	SUB $8, R5, R15
columns:
	MOVD R12, R3
	MOVD R10, R2
	MOVD R11, R6
	MOVD R13, R7
	MOVD R14, R4
	VLD1 (R0), [V4.S4, V5.S4]
value:
	CODES
	ADD R15, R3 // the next value's columns
	FMOVS.P 4(R7), F20
	FMOVS.P 4(R2), F16
	FMULS F20, F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	SUBS $1, R4, R4
	BNE value
	VST1.P [V4.S4, V5.S4], 32(R0)
	ADD $8, R12
	SUBS $8, R9, R9
	BNE columns
	RET

// func accumQ8x2(acc, p *float32, ld int, v *byte, scale *float32, t, d int)
// acc[2][d] += p[2 of ld][t] · scale[t] · v[t][d], 8 columns at a time.
TEXT ·accumQ8x2(SB), NOSPLIT, $0-56
	MOVD acc+0(FP), R0
	MOVD p+8(FP), R10
	MOVD ld+16(FP), R1
	ADD R1<<2, R10, R11
	MOVD v+24(FP), R12
	MOVD scale+32(FP), R13
	MOVD t+40(FP), R14
	MOVD d+48(FP), R5
	ADD R5<<2, R0, R1
	MOVD R5, R9
	SUB $8, R5, R15
columns:
	MOVD R12, R3
	MOVD R10, R2
	MOVD R11, R6
	MOVD R13, R7
	MOVD R14, R4
	VLD1 (R0), [V4.S4, V5.S4]
	VLD1 (R1), [V8.S4, V9.S4]
value:
	CODES
	ADD R15, R3 // the next value's columns
	FMOVS.P 4(R7), F20
	FMOVS.P 4(R2), F16
	FMULS F20, F16
	FMLAL(4, 0, 16, 0)
	FMLAL(5, 1, 16, 0)
	FMOVS.P 4(R6), F17
	FMULS F20, F17
	FMLAL(8, 0, 17, 0)
	FMLAL(9, 1, 17, 0)
	SUBS $1, R4, R4
	BNE value
	VST1.P [V4.S4, V5.S4], 32(R0)
	VST1.P [V8.S4, V9.S4], 32(R1)
	ADD $8, R12
	SUBS $8, R9, R9
	BNE columns
	RET
