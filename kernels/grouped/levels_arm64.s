//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Codes that name small levels times int8 activations by SDOT, with the sums of superblocks as those of Q6.
//
//	V0-V3, V4-V7      sums of the first token, of either half
//	V8-V11, V26-V29   those of the second
//	V12, V13          masks of pairs of bits and of high bits
//	V16-V19           activations, two registers a token, then scales   V24 = 15   V31  levels
//	R0 y   R1 codes   R2 scales   R3 activations   R4 groups left   R8 byte scales   R9 groups of the unit
//	R5, R6 activations and y of the second token   R10, R11 sums of superblocks

#define FIRST1(v, src, lane) SDOT(v, src, 16, lane)
#define SECOND1(v, src, lane) SDOT((v)+4, src, 17, lane)
#define FIRST2(v, src, lane) SDOT(v, src, 16, lane); SDOT((v)+8, src, 18, lane)
#define SECOND2(v, src, lane) SDOT((v)+4, src, 17, lane); SDOT((v)+26, src, 19, lane)

#define ACTS1 VLD1 (R3), [V16.B16, V17.B16]
#define ACTS2 ACTS1; VLD1 (R5), [V18.B16, V19.B16]
#define NEXT1 ADD $64, R3
#define NEXT2 NEXT1; ADD $64, R5

#define ZERO(v) VEOR v.B16, v.B16, v.B16
#define CLEAR1 \
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3) \
	ZERO(V4); ZERO(V5); ZERO(V6); ZERO(V7)
#define CLEAR2 CLEAR1 \
	ZERO(V8); ZERO(V9); ZERO(V10); ZERO(V11) \
	ZERO(V26); ZERO(V27); ZERO(V28); ZERO(V29)

// Words p and p+2 of a half, the nibbles of V20.
#define LEVELS(dot, v, p) \
	AND_B16(21, 20, 24) \
	USHR(22, 20, 4) \
	TBL(21, 31, 21) \
	TBL(22, 31, 22) \
	dot(v, 21, p) \
	dot(v, 22, (p)+2)

#define NIBBLES(dot, v, p) \
	VLD1.P 16(R1), [V20.B16] \
	LEVELS(dot, v, p)

#define NIBBLEHALF(dot) \
	NIBBLES(dot, 0, 0); NIBBLES(dot, 1, 0); NIBBLES(dot, 2, 0); NIBBLES(dot, 3, 0) \
	NIBBLES(dot, 0, 1); NIBBLES(dot, 1, 1); NIBBLES(dot, 2, 1); NIBBLES(dot, 3, 1)

// Four rows of three bits: pairs V15, and high bits V30, which shifts bring to bits 2 and 6.
#define THREEBITS(dot, v, half, shift0, n0, shift1, n1) \
	FMOVQ (64*half+16*v)(R1), F15 \
	FMOVQ (128+16*v)(R1), F30 \
	AND_B16(20, 15, 12) \
	shift0(23, 30, n0) \
	AND_B16(23, 23, 13) \
	ORR_B16(20, 20, 23) \
	LEVELS(dot, v, 0) \
	USHR(15, 15, 2) \
	AND_B16(20, 15, 12) \
	shift1(23, 30, n1) \
	AND_B16(23, 23, 13) \
	ORR_B16(20, 20, 23) \
	LEVELS(dot, v, 1)

#define THREEHALF(dot, half, shift0, n0, shift1, n1) \
	THREEBITS(dot, 0, half, shift0, n0, shift1, n1); THREEBITS(dot, 1, half, shift0, n0, shift1, n1) \
	THREEBITS(dot, 2, half, shift0, n0, shift1, n1); THREEBITS(dot, 3, half, shift0, n0, shift1, n1)

// V16-V19 = the next sixteen byte scales.
#define SMALL \
	VLD1.P 16(R8), [V20.B16] \
	SXTL_H8(21, 20); SXTL2_H8(22, 20) \
	SXTL_S4(16, 21); SXTL2_S4(17, 21); SXTL_S4(18, 22); SXTL2_S4(19, 22)

#define MUL4(v) MUL(v, v, 16); MUL((v)+1, (v)+1, 17); MUL((v)+2, (v)+2, 18); MUL((v)+3, (v)+3, 19)

// The sums from v on and those from w on, as float32.
#define BOTH(v, w) \
	RRR(0x4ea08400, v, v, w); RRR(0x4ea08400, (v)+1, (v)+1, (w)+1) \
	RRR(0x4ea08400, (v)+2, (v)+2, (w)+2); RRR(0x4ea08400, (v)+3, (v)+3, (w)+3) \
	SCVTF(v, v); SCVTF((v)+1, (v)+1); SCVTF((v)+2, (v)+2); SCVTF((v)+3, (v)+3)

// What sums points to, plus the activations' scale times the sums from v on.
#define ADDTO(sums, acts, v) \
	FMOVS 32(acts), F30 \
	VLD1 (sums), [V20.S4, V21.S4, V22.S4, V23.S4] \
	FMLAL(20, v, 30, 0); FMLAL(21, (v)+1, 30, 0); FMLAL(22, (v)+2, 30, 0); FMLAL(23, (v)+3, 30, 0) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (sums)

// Sums of a superblock, in the frame, start from 0 and go to y times its scale, V26-V29.
#define SUPERBEGIN(sums) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (sums)

#define SUPEREND(y, sums) \
	VLD1 (sums), [V16.S4, V17.S4, V18.S4, V19.S4] \
	VLD1 (y), [V20.S4, V21.S4, V22.S4, V23.S4] \
	FMLA(20, 16, 26); FMLA(21, 17, 27); FMLA(22, 18, 28); FMLA(23, 19, 29) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (y)

// V26-V29 = float16 scales at R2 times the factor.
#define WIDE \
	VLD1 (R2), [V20.H8, V21.H8] \
	FCVTL(26, 20); FCVTL2(27, 20); FCVTL(28, 21); FCVTL2(29, 21) \
	FMOVS factor+64(FP), F30 \
	VDUP V30.S[0], V30.S4 \
	FMUL(26, 26, 30); FMUL(27, 27, 30); FMUL(28, 28, 30); FMUL(29, 29, 30)

#define ARGS \
	MOVD y+0(FP), R0 \
	MOVD ld+8(FP), R6 \
	ADD R6<<2, R0, R6 \
	MOVD codes+16(FP), R1 \
	MOVD scales+24(FP), R2 \
	MOVD acts+32(FP), R3 \
	MOVD lda+40(FP), R5 \
	ADD R3, R5, R5 \
	MOVD groups+48(FP), R4 \
	MOVD levels+56(FP), R7 \
	VLD1 (R7), [V31.B16] \
	VMOVI $15, V24.B16 \
	VMOVI $51, V12.B16 \
	VMOVI $68, V13.B16

#define UNIT \
	ADD $32, R2, R8 \
	MOVD $8, R9 \
	ZERO(V20); ZERO(V21); ZERO(V22); ZERO(V23)

// func halvesNL4SNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[1 of ld][16] += d·(… + (sc0·Σ0 + sc1·Σ1)·a) of level·q, by superblocks; groups is a multiple of 8.
TEXT ·halvesNL4SNEONx1(SB), NOSPLIT, $64-68
	ARGS
	MOVD $sums-64(SP), R10
unit:
	UNIT
	SUPERBEGIN(R10)
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS1
	CLEAR1
	NIBBLEHALF(FIRST1)
	NIBBLEHALF(SECOND1)
	SMALL
	MUL4(0)
	MUL4(4)
	BOTH(0, 4)
	ADDTO(R10, R3, 0)
	NEXT1
	SUBS $1, R9, R9
	BNE group
	WIDE
	SUPEREND(R0, R10)
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func halvesNL3KNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[1 of ld][16] += d·(… + (sc0·Σ0 + sc1·Σ1)·a) of level·q, by superblocks; groups is a multiple of 8.
TEXT ·halvesNL3KNEONx1(SB), NOSPLIT, $64-68
	ARGS
	MOVD $sums-64(SP), R10
unit:
	UNIT
	SUPERBEGIN(R10)
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS1
	CLEAR1
	THREEHALF(FIRST1, 0, SHL, 0, USHR, 1)
	THREEHALF(SECOND1, 1, SHL, 2, SHL, 1)
	ADD $192, R1
	SMALL
	MUL4(0)
	SMALL
	MUL4(4)
	BOTH(0, 4)
	ADDTO(R10, R3, 0)
	NEXT1
	SUBS $1, R9, R9
	BNE group
	WIDE
	SUPEREND(R0, R10)
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func halvesNL4SNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[2 of ld][16] += d·(… + (sc0·Σ0 + sc1·Σ1)·a) of level·q, by superblocks; groups is a multiple of 8.
TEXT ·halvesNL4SNEONx2(SB), NOSPLIT, $128-68
	ARGS
	MOVD $sums-128(SP), R10
	ADD $64, R10, R11
unit:
	UNIT
	SUPERBEGIN(R10)
	SUPERBEGIN(R11)
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS2
	CLEAR2
	NIBBLEHALF(FIRST2)
	NIBBLEHALF(SECOND2)
	SMALL
	MUL4(0)
	MUL4(8)
	MUL4(4)
	MUL4(26)
	BOTH(0, 4)
	BOTH(8, 26)
	ADDTO(R10, R3, 0)
	ADDTO(R11, R5, 8)
	NEXT2
	SUBS $1, R9, R9
	BNE group
	WIDE
	SUPEREND(R0, R10)
	SUPEREND(R6, R11)
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func halvesNL3KNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[2 of ld][16] += d·(… + (sc0·Σ0 + sc1·Σ1)·a) of level·q, by superblocks; groups is a multiple of 8.
TEXT ·halvesNL3KNEONx2(SB), NOSPLIT, $128-68
	ARGS
	MOVD $sums-128(SP), R10
	ADD $64, R10, R11
unit:
	UNIT
	SUPERBEGIN(R10)
	SUPERBEGIN(R11)
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS2
	CLEAR2
	THREEHALF(FIRST2, 0, SHL, 0, USHR, 1)
	THREEHALF(SECOND2, 1, SHL, 2, SHL, 1)
	ADD $192, R1
	SMALL
	MUL4(0)
	MUL4(8)
	SMALL
	MUL4(4)
	MUL4(26)
	BOTH(0, 4)
	BOTH(8, 26)
	ADDTO(R10, R3, 0)
	ADDTO(R11, R5, 8)
	NEXT2
	SUBS $1, R9, R9
	BNE group
	WIDE
	SUPEREND(R0, R10)
	SUPEREND(R6, R11)
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET
