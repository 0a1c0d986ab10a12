//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// func absmaxNEON(x *float32, n int) uint32
// The largest of the n values' bits without their signs. n is a positive multiple of 16.
TEXT ·absmaxNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R0
	MOVD n+8(FP), R1
	VEOR V0.B16, V0.B16, V0.B16
largest:
	VLD1.P 64(R0), [V1.S4, V2.S4, V3.S4, V4.S4]
	FABS(1, 1)
	FABS(2, 2)
	FABS(3, 3)
	FABS(4, 4)
	VUMAX V1.S4, V2.S4, V1.S4
	VUMAX V3.S4, V4.S4, V3.S4
	VUMAX V1.S4, V0.S4, V0.S4
	VUMAX V3.S4, V0.S4, V0.S4
	SUBS $16, R1, R1
	BNE  largest
	UMAXV(0, 0)
	FMOVS F0, ret+16(FP)
	RET

// func codesNEON(q *int8, x *float32, n int, inv float32) (sum int32)
// q[n] = x·inv rounded half to even, by a sum whose low bits are the integer;
// sum = Σq. n is a positive multiple of 16.
TEXT ·codesNEON(SB), NOSPLIT, $0-36
	MOVD q+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R2
	FMOVS inv+24(FP), F16
	MOVD $0x4b400000, R3 // 1.5·2^23
	VDUP R3, V17.S4
	VEOR V18.B16, V18.B16, V18.B16
codes:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	FMULL(0, 0, 16, 0)
	FMULL(1, 1, 16, 0)
	FMULL(2, 2, 16, 0)
	FMULL(3, 3, 16, 0)
	FADD(0, 0, 17)
	FADD(1, 1, 17)
	FADD(2, 2, 17)
	FADD(3, 3, 17)
	XTN(0, 0)
	XTN2(0, 1)
	XTN(2, 2)
	XTN2(2, 3)
	VUZP1 V2.B16, V0.B16, V0.B16
	VST1.P [V0.B16], 16(R0)
	SADDLP_H8(1, 0)
	SADALP_S4(18, 1)
	SUBS $16, R2, R2
	BNE  codes
	ADDV(18, 18)
	FMOVS F18, sum+32(FP)
	RET

#define ZIP1(d, n, m) RRR(0x4e003800, d, n, m)
#define ZIP2(d, n, m) RRR(0x4e007800, d, n, m)

// func lanes8NEON(dst, q *int8, stride, n int)
// dst[n][8] = the first n columns of q[8 of stride]. n is a positive multiple of 16.
TEXT ·lanes8NEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD q+8(FP), R1
	MOVD stride+16(FP), R2
	MOVD n+24(FP), R3
lanes:
	MOVD R1, R4
	VLD1 (R4), [V0.B16]
	ADD R2, R4, R4
	VLD1 (R4), [V1.B16]
	ADD R2, R4, R4
	VLD1 (R4), [V2.B16]
	ADD R2, R4, R4
	VLD1 (R4), [V3.B16]
	ADD R2, R4, R4
	VLD1 (R4), [V4.B16]
	ADD R2, R4, R4
	VLD1 (R4), [V5.B16]
	ADD R2, R4, R4
	VLD1 (R4), [V6.B16]
	ADD R2, R4, R4
	VLD1 (R4), [V7.B16]
	ZIP1(16, 0, 4)
	ZIP2(17, 0, 4)
	ZIP1(18, 1, 5)
	ZIP2(19, 1, 5)
	ZIP1(20, 2, 6)
	ZIP2(21, 2, 6)
	ZIP1(22, 3, 7)
	ZIP2(23, 3, 7)
	ZIP1(0, 16, 20) // rows 0 2 4 6
	ZIP1(4, 18, 22) // rows 1 3 5 7
	ZIP2(1, 16, 20) // rows 0 2 4 6
	ZIP2(5, 18, 22) // rows 1 3 5 7
	ZIP1(2, 17, 21) // rows 0 2 4 6
	ZIP1(6, 19, 23) // rows 1 3 5 7
	ZIP2(3, 17, 21) // rows 0 2 4 6
	ZIP2(7, 19, 23) // rows 1 3 5 7
	ZIP1(16, 0, 4)
	ZIP2(17, 0, 4)
	ZIP1(18, 1, 5)
	ZIP2(19, 1, 5)
	ZIP1(20, 2, 6)
	ZIP2(21, 2, 6)
	ZIP1(22, 3, 7)
	ZIP2(23, 3, 7)
	VST1.P [V16.B16, V17.B16, V18.B16, V19.B16], 64(R0)
	VST1.P [V20.B16, V21.B16, V22.B16, V23.B16], 64(R0)
	ADD  $16, R1, R1
	SUBS $16, R3, R3
	BNE  lanes
	RET

// func octetsNEON(dst, q *int8, stride int, order *byte, trits, steps int)
// dst[steps][trits][2][8] = 8·trits columns a step of q[2 of stride], in order, which is of 48
// bytes. trits is 4 or 5, steps is positive.
TEXT ·octetsNEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD q+8(FP), R1
	MOVD stride+16(FP), R2
	ADD  R1, R2, R2
	MOVD order+24(FP), R3
	VLD1 (R3), [V16.B16, V17.B16, V18.B16]
	MOVD trits+32(FP), R4
	LSL  $3, R4, R6
	SUB  $8, R6, R5 // the last 8 columns of a step: of 40, those that follow 32
	MOVD steps+40(FP), R3
step:
	VLD1 (R1), [V0.B16, V1.B16]
	ADD  R1, R5, R7
	FMOVD (R7), F2
	VLD1 (R2), [V4.B16, V5.B16]
	ADD  R2, R5, R7
	FMOVD (R7), F6
	TBL3(20, 0, 16)
	TBL3(21, 0, 17)
	TBL3(24, 4, 16)
	TBL3(25, 4, 17)
	ZIP1_D2(28, 20, 24)
	ZIP2_D2(29, 20, 24)
	ZIP1_D2(30, 21, 25)
	ZIP2_D2(31, 21, 25)
	VST1.P [V28.B16, V29.B16, V30.B16, V31.B16], 64(R0)
	CMP  $4, R4
	BEQ  next
	TBL3(22, 0, 18)
	TBL3(26, 4, 18)
	ZIP1_D2(28, 22, 26)
	VST1.P [V28.B16], 16(R0)
next:
	ADD  R6, R1, R1
	ADD  R6, R2, R2
	SUBS $1, R3, R3
	BNE  step
	RET
