//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Codes that name levels times int8 activations by SDOT, a half of a group after the other.
//
//	V0-V3, V8-V11  sums of the first and the second token
//	V4-V7          d of a unit   V26-V29  scales of a half
//	V16-V19        activations, two registers a token        V14  factor   V24 = 15   V31  levels
//	R0 y   R1 codes   R2 scales   R3 activations   R4 groups left   R8 byte scales   R9 groups of the unit
//	R5, R6 activations and y of the second token

#define DOT1(v, src, half, lane) SDOT(v, src, 16+(half), lane)
#define DOT2(v, src, half, lane) SDOT(v, src, 16+(half), lane); SDOT((v)+8, src, 18+(half), lane)

#define ACTS1 VLD1 (R3), [V16.B16, V17.B16]
#define ACTS2 ACTS1; VLD1 (R5), [V18.B16, V19.B16]
#define NEXT1 ADD $64, R3
#define NEXT2 NEXT1; ADD $64, R5

#define CLEAR1 \
	VEOR V0.B16, V0.B16, V0.B16; VEOR V1.B16, V1.B16, V1.B16 \
	VEOR V2.B16, V2.B16, V2.B16; VEOR V3.B16, V3.B16, V3.B16
#define CLEAR2 CLEAR1 \
	VEOR V8.B16, V8.B16, V8.B16; VEOR V9.B16, V9.B16, V9.B16 \
	VEOR V10.B16, V10.B16, V10.B16; VEOR V11.B16, V11.B16, V11.B16

// Words p and p+2 of a half, the nibbles of V20.
#define LEVELS(dot, v, half, p) \
	AND_B16(21, 20, 24) \
	USHR(22, 20, 4) \
	TBL(21, 31, 21) \
	TBL(22, 31, 22) \
	dot(v, 21, half, p) \
	dot(v, 22, half, (p)+2)

#define NIBBLES(dot, v, half, p) \
	VLD1.P 16(R1), [V20.B16] \
	LEVELS(dot, v, half, p)

#define NIBBLEHALF(dot, half) \
	NIBBLES(dot, 0, half, 0); NIBBLES(dot, 1, half, 0); NIBBLES(dot, 2, half, 0); NIBBLES(dot, 3, half, 0) \
	NIBBLES(dot, 0, half, 1); NIBBLES(dot, 1, half, 1); NIBBLES(dot, 2, half, 1); NIBBLES(dot, 3, half, 1)

// Four registers from d on: float16 scales at R2 times the factor.
#define WIDE(d) \
	VLD1.P 32(R2), [V20.H8, V21.H8] \
	FCVTL(d, 20); FCVTL2((d)+1, 20); FCVTL((d)+2, 21); FCVTL2((d)+3, 21) \
	FMUL(d, d, 14); FMUL((d)+1, (d)+1, 14); FMUL((d)+2, (d)+2, 14); FMUL((d)+3, (d)+3, 14)

// V26-V29 = sixteen scales of e4m3, as binary16 numbers 2⁻⁸ as large, times the factor.
#define TINY \
	VLD1.P 16(R2), [V20.B16] \
	RR(0x2f0fa400, 21, 20); RR(0x6f0fa400, 22, 20) /* USHLL 7 */ \
	FCVTL(26, 21); FCVTL2(27, 21); FCVTL(28, 22); FCVTL2(29, 22) \
	FMUL(26, 26, 14); FMUL(27, 27, 14); FMUL(28, 28, 14); FMUL(29, 29, 14)

// V26-V29 = d times the next sixteen byte scales.
#define SMALL \
	VLD1.P 16(R8), [V20.B16] \
	SXTL_H8(21, 20); SXTL2_H8(22, 20) \
	SXTL_S4(26, 21); SXTL2_S4(27, 21); SXTL_S4(28, 22); SXTL2_S4(29, 22) \
	SCVTF(26, 26); SCVTF(27, 27); SCVTF(28, 28); SCVTF(29, 29) \
	FMUL(26, 26, 4); FMUL(27, 27, 5); FMUL(28, 28, 6); FMUL(29, 29, 7)

// y += (scales·sums)·a, the sums from v on.
#define ADDTO(y, acts, v) \
	SCVTF(v, v); SCVTF((v)+1, (v)+1); SCVTF((v)+2, (v)+2); SCVTF((v)+3, (v)+3) \
	FMUL(v, v, 26); FMUL((v)+1, (v)+1, 27); FMUL((v)+2, (v)+2, 28); FMUL((v)+3, (v)+3, 29) \
	FMOVS 32(acts), F30 \
	VLD1 (y), [V20.S4, V21.S4, V22.S4, V23.S4] \
	FMLAL(20, v, 30, 0); FMLAL(21, (v)+1, 30, 0); FMLAL(22, (v)+2, 30, 0); FMLAL(23, (v)+3, 30, 0) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (y)
#define ADD1 ADDTO(R0, R3, 0)
#define ADD2 ADD1; ADDTO(R6, R5, 8)

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
	FMOVS factor+64(FP), F14 \
	VDUP V14.S[0], V14.S4 \
	VMOVI $15, V24.B16

// func halvesNL4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[1 of ld][16] += (d·Σlevel·q)·a, half by half.
TEXT ·halvesNL4NEONx1(SB), NOSPLIT, $0-68
	ARGS
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS1
	WIDE(26)
	CLEAR1
	NIBBLEHALF(DOT1, 0)
	ADD1
	CLEAR1
	NIBBLEHALF(DOT1, 1)
	ADD1
	NEXT1
	SUBS $1, R4, R4
	BNE group
	RET

// func halvesNL4KNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[1 of ld][16] += ((d·sc)·Σlevel·q)·a, half by half; groups is a multiple of 8.
TEXT ·halvesNL4KNEONx1(SB), NOSPLIT, $0-68
	ARGS
unit:
	WIDE(4)
	MOVD R2, R8
	MOVD $8, R9
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS1
	SMALL
	CLEAR1
	NIBBLEHALF(DOT1, 0)
	ADD1
	CLEAR1
	NIBBLEHALF(DOT1, 1)
	ADD1
	NEXT1
	SUBS $1, R9, R9
	BNE group
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func halvesNL4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[2 of ld][16] += (d·Σlevel·q)·a, half by half.
TEXT ·halvesNL4NEONx2(SB), NOSPLIT, $0-68
	ARGS
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS2
	WIDE(26)
	CLEAR2
	NIBBLEHALF(DOT2, 0)
	ADD2
	CLEAR2
	NIBBLEHALF(DOT2, 1)
	ADD2
	NEXT2
	SUBS $1, R4, R4
	BNE group
	RET

// func halvesNL4KNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[2 of ld][16] += ((d·sc)·Σlevel·q)·a, half by half; groups is a multiple of 8.
TEXT ·halvesNL4KNEONx2(SB), NOSPLIT, $0-68
	ARGS
unit:
	WIDE(4)
	MOVD R2, R8
	MOVD $8, R9
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS2
	SMALL
	CLEAR2
	NIBBLEHALF(DOT2, 0)
	ADD2
	CLEAR2
	NIBBLEHALF(DOT2, 1)
	ADD2
	NEXT2
	SUBS $1, R9, R9
	BNE group
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func halvesNVFP4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[1 of ld][16] += (sc·Σlevel·q)·a, half by half.
TEXT ·halvesNVFP4NEONx1(SB), NOSPLIT, $0-68
	ARGS
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS1
	TINY
	CLEAR1
	NIBBLEHALF(DOT1, 0)
	ADD1
	TINY
	CLEAR1
	NIBBLEHALF(DOT1, 1)
	ADD1
	NEXT1
	SUBS $1, R4, R4
	BNE group
	RET

// func halvesNVFP4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
// y[2 of ld][16] += (sc·Σlevel·q)·a, half by half.
TEXT ·halvesNVFP4NEONx2(SB), NOSPLIT, $0-68
	ARGS
group:
	PRFM 1024(R1), PLDL1STRM
	ACTS2
	TINY
	CLEAR2
	NIBBLEHALF(DOT2, 0)
	ADD2
	TINY
	CLEAR2
	NIBBLEHALF(DOT2, 1)
	ADD2
	NEXT2
	SUBS $1, R4, R4
	BNE group
	RET
