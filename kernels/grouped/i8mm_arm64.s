//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"
#include "low_arm64.h"

// Codes of one and two bits times int8 activations by SMMLA: 2 rows × 8 columns of
// codes times 8 columns of two tokens, 32 products an instruction. A byte's codes are
// of columns 4 apart, so the words of a row and of its other half, side by side, are
// 8 columns for each field of bits. Activations are arranged alike once a group. Sums
// are integers and equal those of SDOT; the steps in floats are the same ones.
//
//	V0, V1   sums of rows 0, 1 and 2, 3 of a vector for two tokens; V2, V3 for the others
//	V4, V5   -8·Σq of the tokens, a pair twice
//	V6, V7   packed codes of rows 0, 1 and 2, 3
//	V8-V15   activations of a pair of tokens, four registers a pair
//	V16-V19  one bit of each byte (Q1)
//	V26      the scales of the tokens' activations

// Lane i of V26 from the record at r.
#define SCALE(r, i) \
	ADD $32, r, R7 \
	VLD1 (R7), V26.S[i]

// Activations of the records at ra and rb, to four registers from p on, and o.
#define ARRANGE(ra, rb, p, o) \
	VLD1 (ra), [V0.B16, V1.B16] \
	VLD1 (rb), [V2.B16, V3.B16] \
	ZIP1_S4(20, 0, 1); ZIP2_S4(21, 0, 1) \
	ZIP1_S4(22, 2, 3); ZIP2_S4(23, 2, 3) \
	ZIP1_D2(p, 20, 22); ZIP2_D2((p)+1, 20, 22) \
	ZIP1_D2((p)+2, 21, 23); ZIP2_D2((p)+3, 21, 23) \
	OFFSET(ra, V20) \
	OFFSET(rb, V21) \
	ZIP1_S4(o, 20, 21)

#define ARRANGE2 ARRANGE(R3, R5, 8, 4); SCALE(R3, 0); SCALE(R5, 1)
#define ARRANGE4 ARRANGE2; ARRANGE(R11, R12, 12, 5); SCALE(R11, 2); SCALE(R12, 3)

#define DOTS2(f) SMMLA(0, 22, 8+(f)); SMMLA(1, 23, 8+(f))
#define DOTS4(f) DOTS2(f); SMMLA(2, 22, 12+(f)); SMMLA(3, 23, 12+(f))

// The sums of tokens i and i+1 go to those of their unit.
#define ADDPAIR(s, i, at) \
	UZP1_S4(20, s, (s)+1) \
	UZP2_S4(21, s, (s)+1) \
	SCVTF(20, 20) \
	SCVTF(21, 21) \
	FMOVQ at(R10), F30 \
	FMOVQ (64+at)(R10), F31 \
	FMLAL(30, 20, 26, i) \
	FMLAL(31, 21, 26, (i)+1) \
	FMOVQ F30, at(R10) \
	FMOVQ F31, (64+at)(R10)

#define ADD2(v) ADDPAIR(0, 0, 16*v)
#define ADD4(v) ADD2(v); ADDPAIR(2, 2, 128+16*v)

#define COPY2 VMOV V4.B16, V0.B16; VMOV V4.B16, V1.B16
#define COPY4 COPY2; VMOV V5.B16, V2.B16; VMOV V5.B16, V3.B16

#define FIELD(dots, f, shift, bits) \
	shift(22, 6, bits) \
	shift(23, 7, bits) \
	VAND V24.B16, V22.B16, V22.B16 \
	VAND V24.B16, V23.B16, V23.B16 \
	dots(f)

#define PAIRS(copy, dots, add, v) \
	FMOVQ (16*v)(R1), F20 \
	FMOVQ (64+16*v)(R1), F21 \
	ZIP1_S4(6, 20, 21) \
	ZIP2_S4(7, 20, 21) \
	copy \
	FIELD(dots, 0, SHL, 3); FIELD(dots, 1, SHL, 1); FIELD(dots, 2, USHR, 1); FIELD(dots, 3, USHR, 3) \
	add(v)

#define PAIRBAND(copy, dots, add) \
	PAIRS(copy, dots, add, 0); PAIRS(copy, dots, add, 1); PAIRS(copy, dots, add, 2); PAIRS(copy, dots, add, 3)

// Bit f of the bytes of the first half, bit 4+f of those of the second.
#define BITMASKS \
	MOVD $0x1010101001010101, R7 \
	VDUP R7, V16.D2 \
	VADD V16.B16, V16.B16, V17.B16 \
	VADD V17.B16, V17.B16, V18.B16 \
	VADD V18.B16, V18.B16, V19.B16

#define CLEAR2 VEOR V0.B16, V0.B16, V0.B16; VEOR V1.B16, V1.B16, V1.B16
#define CLEAR4 CLEAR2; VEOR V2.B16, V2.B16, V2.B16; VEOR V3.B16, V3.B16, V3.B16

#define BIT(dots, f) \
	CMTST(22, 6, 16+(f)) \
	CMTST(23, 7, 16+(f)) \
	dots(f)

// Sums of -bit·q become 8·Σ(2·bit-1)·q.
#define SIGNS(s, o) SHLI(s, s, 4); SUBI(s, o, s)
#define SIGNS2 SIGNS(0, 4); SIGNS(1, 4)
#define SIGNS4 SIGNS2; SIGNS(2, 5); SIGNS(3, 5)

#define BITS(clear, dots, signs, add, v) \
	FMOVQ (16*v)(R1), F20 \
	ZIP1_S4(6, 20, 20) \
	ZIP2_S4(7, 20, 20) \
	clear \
	BIT(dots, 0); BIT(dots, 1); BIT(dots, 2); BIT(dots, 3) \
	signs \
	add(v)

#define BITBAND(clear, dots, signs, add) \
	BITS(clear, dots, signs, add, 0); BITS(clear, dots, signs, add, 1); BITS(clear, dots, signs, add, 2); BITS(clear, dots, signs, add, 3)

// func groupedQ1G128I8MMx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
// Needs FEAT_I8MM.
TEXT ·groupedQ1G128I8MMx2(SB), NOSPLIT, $128-56
	ARGS
	MOVD $sums-128(SP), R10
unit:
	BITMASKS
	BEGIN2
	MOVD $4, R9
group:
	ARRANGE2
	BITBAND(CLEAR2, DOTS2, SIGNS2, ADD2)
	ADD $64, R1
	NEXT2
	SUBS $1, R9, R9
	BNE group
	END2
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ1G128I8MMx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[4 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
// Needs FEAT_I8MM.
TEXT ·groupedQ1G128I8MMx4(SB), NOSPLIT, $256-56
	ARGS
	MOVD $sums-256(SP), R10
unit:
	BITMASKS
	BEGIN4
	MOVD $4, R9
group:
	ARRANGE4
	BITBAND(CLEAR4, DOTS4, SIGNS4, ADD4)
	ADD $64, R1
	NEXT4
	SUBS $1, R9, R9
	BNE group
	END4
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ2G64I8MMx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += d·(… + Σ·a), by units of 2 groups; groups is a multiple of 2.
// Needs FEAT_I8MM.
TEXT ·groupedQ2G64I8MMx2(SB), NOSPLIT, $128-56
	ARGS
	MOVD $sums-128(SP), R10
unit:
	BEGIN2
	MOVD $2, R9
group:
	ARRANGE2
	PAIRBAND(COPY2, DOTS2, ADD2)
	ADD $128, R1
	NEXT2
	SUBS $1, R9, R9
	BNE group
	END2
	SUBS $2, R4, R4
	BNE unit
	RET

// func groupedQ2G64I8MMx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[4 of ld][16] += d·(… + Σ·a), by units of 2 groups; groups is a multiple of 2.
// Needs FEAT_I8MM.
TEXT ·groupedQ2G64I8MMx4(SB), NOSPLIT, $256-56
	ARGS
	MOVD $sums-256(SP), R10
unit:
	BEGIN4
	MOVD $2, R9
group:
	ARRANGE4
	PAIRBAND(COPY4, DOTS4, ADD4)
	ADD $128, R1
	NEXT4
	SUBS $1, R9, R9
	BNE group
	END4
	SUBS $2, R4, R4
	BNE unit
	RET

// func groupedQ2G128I8MMx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
// Needs FEAT_I8MM.
TEXT ·groupedQ2G128I8MMx2(SB), NOSPLIT, $128-56
	ARGS
	MOVD $sums-128(SP), R10
unit:
	BEGIN2
	MOVD $4, R9
group:
	ARRANGE2
	PAIRBAND(COPY2, DOTS2, ADD2)
	ADD $128, R1
	NEXT2
	SUBS $1, R9, R9
	BNE group
	END2
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ2G128I8MMx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[4 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
// Needs FEAT_I8MM.
TEXT ·groupedQ2G128I8MMx4(SB), NOSPLIT, $256-56
	ARGS
	MOVD $sums-256(SP), R10
unit:
	BEGIN4
	MOVD $4, R9
group:
	ARRANGE4
	PAIRBAND(COPY4, DOTS4, ADD4)
	ADD $128, R1
	NEXT4
	SUBS $1, R9, R9
	BNE group
	END4
	SUBS $4, R4, R4
	BNE unit
	RET
