//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"
#include "low_arm64.h"

// Codes of one and two bits times int8 activations by SDOT. A vector of codes is
// 4 rows × 4 columns, a band 4 vectors, which are multiplied one after the other,
// so that a code is unfolded once for all tokens of a tile. Sums of a group are
// eight times those of the weights, as on amd64; d/8 makes up for it, exactly.
//
//	V0-V3    sums of the tokens, of one vector
//	V8-V15   activations, two registers a token
//	V4-V7, V16-V19  one bit of each byte (Q1)
//
// low_arm64.h has the other registers.

#define DOTS1(half, lane) SDOT(0, 22, 8+(half), lane)
#define DOTS2(half, lane) DOTS1(half, lane); SDOT(1, 22, 10+(half), lane)
#define DOTS3(half, lane) DOTS2(half, lane); SDOT(2, 22, 12+(half), lane)
#define DOTS4(half, lane) DOTS3(half, lane); SDOT(3, 22, 14+(half), lane)

#define ACTS1 VLD1 (R3), [V8.B16, V9.B16]
#define ACTS2 ACTS1; VLD1 (R5), [V10.B16, V11.B16]
#define ACTS3 ACTS2; VLD1 (R11), [V12.B16, V13.B16]
#define ACTS4 ACTS3; VLD1 (R12), [V14.B16, V15.B16]

// Sums of -bit·q become 8·Σ(2·bit-1)·q.
#define SIGNS(acts, v) \
	OFFSET(acts, V23) \
	SHLI(v, v, 4) \
	SUBI(v, 23, v)

// The sum of a token goes to those of its unit.
#define ADDUNIT(acts, v, at) \
	SCVTF(v, v) \
	FMOVS 32(acts), F30 \
	FMOVQ at(R10), F31 \
	FMLAL(31, v, 30, 0) \
	FMOVQ F31, at(R10)

#define BITSTART VEOR V0.B16, V0.B16, V0.B16; VEOR V1.B16, V1.B16, V1.B16; VEOR V2.B16, V2.B16, V2.B16; VEOR V3.B16, V3.B16, V3.B16

#define BITS(dots, v) \
	BITSTART \
	FMOVQ (16*v)(R1), F20 \
	CMTST(22, 20, 4); dots(0, 0); CMTST(22, 20, 5); dots(0, 1) \
	CMTST(22, 20, 6); dots(0, 2); CMTST(22, 20, 7); dots(0, 3) \
	CMTST(22, 20, 16); dots(1, 0); CMTST(22, 20, 17); dots(1, 1) \
	CMTST(22, 20, 18); dots(1, 2); CMTST(22, 20, 19); dots(1, 3)

#define BITEND1(v) SIGNS(R3, 0); ADDUNIT(R3, 0, 16*v)
#define BITEND2(v) BITEND1(v); SIGNS(R5, 1); ADDUNIT(R5, 1, 64+16*v)
#define BITEND3(v) BITEND2(v); SIGNS(R11, 2); ADDUNIT(R11, 2, 128+16*v)
#define BITEND4(v) BITEND3(v); SIGNS(R12, 3); ADDUNIT(R12, 3, 192+16*v)

#define BITMASKS \
	VMOVI $1, V4.B16; VMOVI $2, V5.B16; VMOVI $4, V6.B16; VMOVI $8, V7.B16 \
	VMOVI $16, V16.B16; VMOVI $32, V17.B16; VMOVI $64, V18.B16; VMOVI $128, V19.B16

#define PAIR(dots, half, lane, shift, bits) \
	shift(22, 20+half, bits) \
	VAND V24.B16, V22.B16, V22.B16 \
	dots(half, lane)

#define PAIRS(dots, v) \
	FMOVQ (16*v)(R1), F20 \
	FMOVQ (64+16*v)(R1), F21 \
	PAIR(dots, 0, 0, SHL, 3); PAIR(dots, 0, 1, SHL, 1); PAIR(dots, 0, 2, USHR, 1); PAIR(dots, 0, 3, USHR, 3) \
	PAIR(dots, 1, 0, SHL, 3); PAIR(dots, 1, 1, SHL, 1); PAIR(dots, 1, 2, USHR, 1); PAIR(dots, 1, 3, USHR, 3)

#define PAIRSTART1 OFFSET(R3, V0)
#define PAIRSTART2 PAIRSTART1; OFFSET(R5, V1)
#define PAIRSTART3 PAIRSTART2; OFFSET(R11, V2)
#define PAIRSTART4 PAIRSTART3; OFFSET(R12, V3)

#define PAIREND1(v) ADDUNIT(R3, 0, 16*v)
#define PAIREND2(v) PAIREND1(v); ADDUNIT(R5, 1, 64+16*v)
#define PAIREND3(v) PAIREND2(v); ADDUNIT(R11, 2, 128+16*v)
#define PAIREND4(v) PAIREND3(v); ADDUNIT(R12, 3, 192+16*v)

// A group of a band, vector by vector.
#define BITBAND(dots, end) \
	BITS(dots, 0); end(0); BITS(dots, 1); end(1); BITS(dots, 2); end(2); BITS(dots, 3); end(3)

#define PAIRBAND(start, dots, end) \
	start; PAIRS(dots, 0); end(0); start; PAIRS(dots, 1); end(1); start; PAIRS(dots, 2); end(2); start; PAIRS(dots, 3); end(3)

// func groupedQ1G128NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ1G128NEONx2(SB), NOSPLIT, $128-56
	ARGS
	MOVD $sums-128(SP), R10
unit:
	BITMASKS
	BEGIN2
	MOVD $4, R9
group:
	ACTS2
	BITBAND(DOTS2, BITEND2)
	ADD $64, R1
	NEXT2
	SUBS $1, R9, R9
	BNE group
	END2
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ1G128NEONx3(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[3 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ1G128NEONx3(SB), NOSPLIT, $192-56
	ARGS
	MOVD $sums-192(SP), R10
unit:
	BITMASKS
	BEGIN3
	MOVD $4, R9
group:
	ACTS3
	BITBAND(DOTS3, BITEND3)
	ADD $64, R1
	NEXT3
	SUBS $1, R9, R9
	BNE group
	END3
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ1G128NEONx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[4 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ1G128NEONx4(SB), NOSPLIT, $256-56
	ARGS
	MOVD $sums-256(SP), R10
unit:
	BITMASKS
	BEGIN4
	MOVD $4, R9
group:
	ACTS4
	BITBAND(DOTS4, BITEND4)
	ADD $64, R1
	NEXT4
	SUBS $1, R9, R9
	BNE group
	END4
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ2G64NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += d·(… + Σ·a), by units of 2 groups; groups is a multiple of 2.
TEXT ·groupedQ2G64NEONx2(SB), NOSPLIT, $128-56
	ARGS
	MOVD $sums-128(SP), R10
unit:
	BEGIN2
	MOVD $2, R9
group:
	ACTS2
	PAIRBAND(PAIRSTART2, DOTS2, PAIREND2)
	ADD $128, R1
	NEXT2
	SUBS $1, R9, R9
	BNE group
	END2
	SUBS $2, R4, R4
	BNE unit
	RET

// func groupedQ2G64NEONx3(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[3 of ld][16] += d·(… + Σ·a), by units of 2 groups; groups is a multiple of 2.
TEXT ·groupedQ2G64NEONx3(SB), NOSPLIT, $192-56
	ARGS
	MOVD $sums-192(SP), R10
unit:
	BEGIN3
	MOVD $2, R9
group:
	ACTS3
	PAIRBAND(PAIRSTART3, DOTS3, PAIREND3)
	ADD $128, R1
	NEXT3
	SUBS $1, R9, R9
	BNE group
	END3
	SUBS $2, R4, R4
	BNE unit
	RET

// func groupedQ2G64NEONx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[4 of ld][16] += d·(… + Σ·a), by units of 2 groups; groups is a multiple of 2.
TEXT ·groupedQ2G64NEONx4(SB), NOSPLIT, $256-56
	ARGS
	MOVD $sums-256(SP), R10
unit:
	BEGIN4
	MOVD $2, R9
group:
	ACTS4
	PAIRBAND(PAIRSTART4, DOTS4, PAIREND4)
	ADD $128, R1
	NEXT4
	SUBS $1, R9, R9
	BNE group
	END4
	SUBS $2, R4, R4
	BNE unit
	RET

// func groupedQ2G128NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ2G128NEONx2(SB), NOSPLIT, $128-56
	ARGS
	MOVD $sums-128(SP), R10
unit:
	BEGIN2
	MOVD $4, R9
group:
	ACTS2
	PAIRBAND(PAIRSTART2, DOTS2, PAIREND2)
	ADD $128, R1
	NEXT2
	SUBS $1, R9, R9
	BNE group
	END2
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ2G128NEONx3(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[3 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ2G128NEONx3(SB), NOSPLIT, $192-56
	ARGS
	MOVD $sums-192(SP), R10
unit:
	BEGIN3
	MOVD $4, R9
group:
	ACTS3
	PAIRBAND(PAIRSTART3, DOTS3, PAIREND3)
	ADD $128, R1
	NEXT3
	SUBS $1, R9, R9
	BNE group
	END3
	SUBS $4, R4, R4
	BNE unit
	RET

// func groupedQ2G128NEONx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[4 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ2G128NEONx4(SB), NOSPLIT, $256-56
	ARGS
	MOVD $sums-256(SP), R10
unit:
	BEGIN4
	MOVD $4, R9
group:
	ACTS4
	PAIRBAND(PAIRSTART4, DOTS4, PAIREND4)
	ADD $128, R1
	NEXT4
	SUBS $1, R9, R9
	BNE group
	END4
	SUBS $4, R4, R4
	BNE unit
	RET
