//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Panels (panel_arm64.s) times int8 activations by SMMLA: 8 columns of two tokens times
// 8 columns of two rows, 32 products an instruction. The sums of two tokens and two rows
// are a register, token by token. The steps in floats are those of the other kernels.
//
// Tiles are of 8 rows and one or two pairs of tokens:
//
//	V0-V3, V4-V7     sums of a group, of a pair: four pairs of rows
//	V8-V11, V12-V15  sums of floats
//	V16-V19 weights   V20 activations   V22, V23 their scales   V31 1.5·2²³
//	R0, R6, R13, R14 y   R1 panel   R2 scales   R3, R5 activations   R4 groups left

#define TILEARGS \
	MOVD y+0(FP), R0 \
	MOVD ld+8(FP), R7 \
	ADD R7<<2, R0, R6 \
	ADD R7<<2, R6, R13 \
	ADD R7<<2, R13, R14 \
	MOVD panel+16(FP), R1 \
	MOVD scales+24(FP), R2 \
	MOVD acts+32(FP), R3 \
	MOVD stride+40(FP), R5 \
	ADD R3, R5, R5 \
	MOVD groups+48(FP), R4 \
	MOVD $0x4b400000, R7 \
	VDUP R7, V31.S4

// Integers that start from the bits of 1.5·2²³ are those of 1.5·2²³ + Σ, which loses
// nothing: |Σ| of 32 products is below 2²².
#define START(v) VMOV V31.B16, v

#define START1 START(V0.B16); START(V1.B16); START(V2.B16); START(V3.B16)
#define START2 START1; START(V4.B16); START(V5.B16); START(V6.B16); START(V7.B16)

#define WEIGHTS VLD1.P 64(R1), [V16.B16, V17.B16, V18.B16, V19.B16]
#define TIMES(v, acts, o) \
	FMOVQ (16*o)(acts), F20 \
	SMMLA(v, 20, 16); SMMLA((v)+1, 20, 17); SMMLA((v)+2, 20, 18); SMMLA((v)+3, 20, 19)

#define OCTET1(o) WEIGHTS; TIMES(0, R3, o)
#define OCTET2(o) OCTET1(o); TIMES(4, R5, o)
#define OCTETS(octet) octet(0); octet(1); octet(2); octet(3)

#define FLOATS(v) FSUB(v, v, 31); FSUB((v)+1, (v)+1, 31); FSUB((v)+2, (v)+2, 31); FSUB((v)+3, (v)+3, 31)

// u += v·scales of the activations.
#define ADDTO(u, v, acts, a, fa) \
	FMOVQ 64(acts), fa \
	FMLA(u, v, a); FMLA((u)+1, (v)+1, a); FMLA((u)+2, (v)+2, a); FMLA((u)+3, (v)+3, a)

#define SUMS1 FLOATS(0); ADDTO(8, 0, R3, 22, F22)
#define SUMS2 SUMS1; FLOATS(4); ADDTO(12, 4, R5, 23, F23)

#define SCALED(v) FMUL(v, v, 24); FMUL((v)+1, (v)+1, 25); FMUL((v)+2, (v)+2, 26); FMUL((v)+3, (v)+3, 27)
#define SCALES \
	FMOVQ 0(R2), F24; FMOVQ 16(R2), F25; FMOVQ 32(R2), F26; FMOVQ 48(R2), F27 \
	ADD $64, R2
#define SCALEDSUMS1 SCALES; FLOATS(0); SCALED(0); ADDTO(8, 0, R3, 22, F22)
#define SCALEDSUMS2 SCALEDSUMS1; FLOATS(4); SCALED(4); ADDTO(12, 4, R5, 23, F23)

#define NEXT1 ADD $96, R3
#define NEXT2 NEXT1; ADD $96, R5

// The float sums of a pair from u on are y of its tokens.
#define TAKE(u, ya, yb) \
	VLD1 (ya), [V16.S4, V17.S4] \
	VLD1 (yb), [V18.S4, V19.S4] \
	ZIP1_D2(u, 16, 18); ZIP2_D2((u)+1, 16, 18) \
	ZIP1_D2((u)+2, 17, 19); ZIP2_D2((u)+3, 17, 19)

#define BYTOKEN(u) \
	ZIP1_D2(16, u, (u)+1); ZIP2_D2(18, u, (u)+1) \
	ZIP1_D2(17, (u)+2, (u)+3); ZIP2_D2(19, (u)+2, (u)+3)

#define GIVE(u, ya, yb) \
	BYTOKEN(u) \
	VST1 [V16.S4, V17.S4], (ya) \
	VST1 [V18.S4, V19.S4], (yb)

// y gets the float sums from u on times the scales V26, V27 of 4 rows each.
#define GIVESCALED(u, ya, yb) \
	BYTOKEN(u) \
	VLD1 (ya), [V20.S4, V21.S4] \
	VLD1 (yb), [V22.S4, V23.S4] \
	FMLA(20, 16, 26); FMLA(21, 17, 27) \
	FMLA(22, 18, 26); FMLA(23, 19, 27) \
	VST1 [V20.S4, V21.S4], (ya) \
	VST1 [V22.S4, V23.S4], (yb)

#define CLEAR1 VEOR V8.B16, V8.B16, V8.B16; VEOR V9.B16, V9.B16, V9.B16; VEOR V10.B16, V10.B16, V10.B16; VEOR V11.B16, V11.B16, V11.B16
#define CLEAR2 CLEAR1; VEOR V12.B16, V12.B16, V12.B16; VEOR V13.B16, V13.B16, V13.B16; VEOR V14.B16, V14.B16, V14.B16; VEOR V15.B16, V15.B16, V15.B16

#define UNITSCALES \
	VLD1 (R2), [V16.H8] \
	ADD $32, R2 \
	FCVTL(26, 16); FCVTL2(27, 16)

#define ZERO(v) VEOR v.B16, v.B16, v.B16
#define ZERO1 ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
#define ZERO2 ZERO1; ZERO(V4); ZERO(V5); ZERO(V6); ZERO(V7)
#define LOAD4(at, a, b, c, d) FMOVQ (at)(R2), a; FMOVQ (at+16)(R2), b; FMOVQ (at+32)(R2), c; FMOVQ (at+48)(R2), d

// Sums from v on times sc, as floats, in V16-V19: |sc·Σ| is below 2²² too. Then times d, less
// dmin·m times Σq, to the float sums from u on.
#define PARTS(v, u, acts) \
	LOAD4(0, F24, F25, F26, F27) \
	START(V16.B16); START(V17.B16); START(V18.B16); START(V19.B16) \
	MLA(16, v, 24); MLA(17, (v)+1, 25); MLA(18, (v)+2, 26); MLA(19, (v)+3, 27) \
	FLOATS(16) \
	LOAD4(64, F24, F25, F26, F27) \
	SCALED(16) \
	LOAD4(128, F28, F29, F30, F21) \
	FMOVQ 80(acts), F22 \
	FMLS(16, 28, 22); FMLS(17, 29, 22); FMLS(18, 30, 22); FMLS(19, 21, 22) \
	ADDTO(u, 16, acts, 23, F23)

// Of Q6, the sums of the second half of a group are V24-V27 and V28-V31.
#define ZEROS1 ZERO1; ZERO(V24); ZERO(V25); ZERO(V26); ZERO(V27)
#define ZEROS2 ZEROS1; ZERO(V4); ZERO(V5); ZERO(V6); ZERO(V7); ZERO(V28); ZERO(V29); ZERO(V30); ZERO(V31)
#define HALVES1 OCTET1(0); OCTET1(1); WEIGHTS; TIMES(24, R3, 2); WEIGHTS; TIMES(24, R3, 3)
#define HALVES2 \
	OCTET2(0); OCTET2(1) \
	WEIGHTS; TIMES(24, R3, 2); TIMES(28, R5, 2) \
	WEIGHTS; TIMES(24, R3, 3); TIMES(28, R5, 3)

#define FIRST(v) MUL(v, v, 16); MUL((v)+1, (v)+1, 17); MUL((v)+2, (v)+2, 18); MUL((v)+3, (v)+3, 19)
#define SECOND(v, w) MLA(v, w, 16); MLA((v)+1, (w)+1, 17); MLA((v)+2, (w)+2, 18); MLA((v)+3, (w)+3, 19)
#define CONVERTED(v) SCVTF(v, v); SCVTF((v)+1, (v)+1); SCVTF((v)+2, (v)+2); SCVTF((v)+3, (v)+3)

// func i8mmScale4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)
// y[4 of ld][8] += (d·Σ)·a, group by group; scales of panelScales. Needs FEAT_I8MM.
TEXT ·i8mmScale4(SB), NOSPLIT, $0-56
	TILEARGS
	TAKE(8, R0, R6)
	TAKE(12, R13, R14)
group:
	START2
	OCTETS(OCTET2)
	SCALEDSUMS2
	NEXT2
	SUBS $1, R4, R4
	BNE group
	GIVE(8, R0, R6)
	GIVE(12, R13, R14)
	RET

// func i8mmScale2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)
// The same of 2 tokens.
TEXT ·i8mmScale2(SB), NOSPLIT, $0-56
	TILEARGS
	TAKE(8, R0, R6)
group:
	START1
	OCTETS(OCTET1)
	SCALEDSUMS1
	NEXT1
	SUBS $1, R4, R4
	BNE group
	GIVE(8, R0, R6)
	RET

// func i8mmUnit4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups, unit int)
// y[4 of ld][8] += d·(… + Σ·a), by units of groups, of which groups is a multiple. scales
// are float16[groups/unit][16] from these rows on. Needs FEAT_I8MM.
TEXT ·i8mmUnit4(SB), NOSPLIT, $0-64
	TILEARGS
	MOVD unit+56(FP), R8
unit:
	CLEAR2
	MOVD R8, R9
group:
	START2
	OCTETS(OCTET2)
	SUMS2
	NEXT2
	SUBS $1, R9, R9
	BNE group
	UNITSCALES
	GIVESCALED(8, R0, R6)
	GIVESCALED(12, R13, R14)
	SUBS R8, R4, R4
	BNE unit
	RET

// func i8mmUnit2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups, unit int)
// The same of 2 tokens.
TEXT ·i8mmUnit2(SB), NOSPLIT, $0-64
	TILEARGS
	MOVD unit+56(FP), R8
unit:
	CLEAR1
	MOVD R8, R9
group:
	START1
	OCTETS(OCTET1)
	SUMS1
	NEXT1
	SUBS $1, R9, R9
	BNE group
	UNITSCALES
	GIVESCALED(8, R0, R6)
	SUBS R8, R4, R4
	BNE unit
	RET

// func i8mmQ4Mx4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)
// y[4 of ld][8] += (d·(sc·Σ) - (dmin·m)·Σq)·a, group by group; scales of panelScalesQ4M.
// Needs FEAT_I8MM.
TEXT ·i8mmQ4Mx4(SB), NOSPLIT, $0-56
	TILEARGS
	TAKE(8, R0, R6)
	TAKE(12, R13, R14)
group:
	ZERO2
	OCTETS(OCTET2)
	PARTS(0, 8, R3)
	PARTS(4, 12, R5)
	ADD $192, R2
	NEXT2
	SUBS $1, R4, R4
	BNE group
	GIVE(8, R0, R6)
	GIVE(12, R13, R14)
	RET

// func i8mmQ4Mx2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)
// The same of 2 tokens.
TEXT ·i8mmQ4Mx2(SB), NOSPLIT, $0-56
	TILEARGS
	TAKE(8, R0, R6)
group:
	ZERO1
	OCTETS(OCTET1)
	PARTS(0, 8, R3)
	ADD $192, R2
	NEXT1
	SUBS $1, R4, R4
	BNE group
	GIVE(8, R0, R6)
	RET

// func i8mmQ6x4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)
// y[4 of ld][8] += d·(… + (sc₀·Σ₀ + sc₁·Σ₁)·a), by 8 groups, of which groups is a multiple;
// scales of panelScalesQ6. Needs FEAT_I8MM.
TEXT ·i8mmQ6x4(SB), NOSPLIT, $0-56
	TILEARGS
unit:
	CLEAR2
	MOVD $8, R9
group:
	ZEROS2
	HALVES2
	LOAD4(0, F16, F17, F18, F19)
	FIRST(0)
	FIRST(4)
	LOAD4(64, F16, F17, F18, F19)
	SECOND(0, 24)
	SECOND(4, 28)
	CONVERTED(0)
	CONVERTED(4)
	ADDTO(8, 0, R3, 22, F22)
	ADDTO(12, 4, R5, 23, F23)
	ADD $128, R2
	NEXT2
	SUBS $1, R9, R9
	BNE group
	VLD1.P 32(R2), [V26.S4, V27.S4]
	GIVESCALED(8, R0, R6)
	GIVESCALED(12, R13, R14)
	SUBS $8, R4, R4
	BNE unit
	RET

// func i8mmQ6x2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)
// The same of 2 tokens.
TEXT ·i8mmQ6x2(SB), NOSPLIT, $0-56
	TILEARGS
unit:
	CLEAR1
	MOVD $8, R9
group:
	ZEROS1
	HALVES1
	LOAD4(0, F16, F17, F18, F19)
	FIRST(0)
	LOAD4(64, F16, F17, F18, F19)
	SECOND(0, 24)
	CONVERTED(0)
	ADDTO(8, 0, R3, 22, F22)
	ADD $128, R2
	NEXT1
	SUBS $1, R9, R9
	BNE group
	VLD1.P 32(R2), [V26.S4, V27.S4]
	GIVESCALED(8, R0, R6)
	SUBS $8, R4, R4
	BNE unit
	RET
