//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"
#include "low_arm64.h"

// Codes of one and two bits times one token by SDOT: the four vectors of a band have sums
// of their own, and those of a unit stay in registers.
//
//	V0-V3    sums of a group   V12-V15  sums of the unit
//	V8, V9   activations       V20-V23, V26-V31  codes
//
// low_arm64.h has the other registers.

#define CLEAR(a, b, c, d) VEOR a.B16, a.B16, a.B16; VEOR b.B16, b.B16, b.B16; VEOR c.B16, c.B16, c.B16; VEOR d.B16, d.B16, d.B16

// The sums of a group go to those of the unit.
#define ADDALL \
	FMOVS 32(R3), F30 \
	SCVTF(0, 0); SCVTF(1, 1); SCVTF(2, 2); SCVTF(3, 3) \
	FMLAL(12, 0, 30, 0); FMLAL(13, 1, 30, 0); FMLAL(14, 2, 30, 0); FMLAL(15, 3, 30, 0)

// y += the unit's sums times V26-V29.
#define ENDALL \
	VLD1 (R0), [V20.S4, V21.S4, V22.S4, V23.S4] \
	FMLA(20, 12, 26); FMLA(21, 13, 27); FMLA(22, 14, 28); FMLA(23, 15, 29) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R0)

#define BIT(mask, half, lane) \
	CMTST(26, 20, mask); CMTST(27, 21, mask); CMTST(28, 22, mask); CMTST(29, 23, mask) \
	SDOT(0, 26, half, lane); SDOT(1, 27, half, lane); SDOT(2, 28, half, lane); SDOT(3, 29, half, lane)

// Sums of -bit·q become 8·Σ(2·bit-1)·q.
#define SIGNS(v) SHLI(v, v, 4); SUBI(v, 31, v)

// func groupedQ1G128NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ1G128NEONx1(SB), NOSPLIT, $0-56
	ARGS
	VMOVI $1, V4.B16; VMOVI $2, V5.B16; VMOVI $4, V6.B16; VMOVI $8, V7.B16
	VMOVI $16, V16.B16; VMOVI $32, V17.B16; VMOVI $64, V18.B16; VMOVI $128, V19.B16
unit:
	CLEAR(V12, V13, V14, V15)
	MOVD $4, R9
group:
	PRFM 1024(R1), PLDL1STRM
	VLD1 (R3), [V8.B16, V9.B16]
	VLD1.P 64(R1), [V20.B16, V21.B16, V22.B16, V23.B16]
	OFFSET(R3, V31)
	CLEAR(V0, V1, V2, V3)
	BIT(4, 8, 0); BIT(5, 8, 1); BIT(6, 8, 2); BIT(7, 8, 3)
	BIT(16, 9, 0); BIT(17, 9, 1); BIT(18, 9, 2); BIT(19, 9, 3)
	SIGNS(0); SIGNS(1); SIGNS(2); SIGNS(3)
	ADDALL
	NEXT1
	SUBS $1, R9, R9
	BNE group
	SCALES
	ENDALL
	SUBS $4, R4, R4
	BNE unit
	RET

// Half a vector of pairs: of the first field and the last to sums v, of the second, four
// times what it is, to V4-V7, of the third, sixteen times, to V16-V19.
#define FIELDS(v, at, half) \
	FMOVQ at(R1), F20 \
	AND_B16(26, 20, 22) \
	AND_B16(27, 20, 23) \
	AND_B16(28, 20, 24) \
	USHR(29, 20, 6) \
	SDOT(v, 26, half, 0) \
	SDOT((v)+4, 27, half, 1) \
	SDOT((v)+16, 28, half, 2) \
	SDOT(v, 29, half, 3)

#define PAIRS(v) FIELDS(v, 16*v, 8); FIELDS(v, (64+16*v), 9)
#define JOIN(v) SSRAI(v, (v)+4, 2); SSRAI(v, (v)+16, 4)

// Sums start from -Σq.
#define PAIRUNIT(unitgroups) \
	VMOVI $3, V22.B16; VMOVI $12, V23.B16; VMOVI $48, V24.B16 \
	CLEAR(V12, V13, V14, V15) \
	MOVD $(unitgroups), R9

#define PAIRGROUP \
	PRFM 1024(R1), PLDL1STRM \
	VLD1 (R3), [V8.B16, V9.B16] \
	OFFSET(R3, V0) \
	SSHRI(0, 0, 3) \
	VMOV V0.B16, V1.B16; VMOV V0.B16, V2.B16; VMOV V0.B16, V3.B16 \
	CLEAR(V4, V5, V6, V7) \
	CLEAR(V16, V17, V18, V19) \
	PAIRS(0); PAIRS(1); PAIRS(2); PAIRS(3) \
	JOIN(0); JOIN(1); JOIN(2); JOIN(3) \
	ADDALL \
	ADD $128, R1 \
	NEXT1

// The unit's scales, which are not those of sums eight times as large.
#define WHOLESCALES \
	VLD1.P 32(R2), [V20.H8, V21.H8] \
	FCVTL(26, 20); FCVTL2(27, 20); FCVTL(28, 21); FCVTL2(29, 21)

// func groupedQ2G64NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += d·(… + Σ·a), by units of 2 groups; groups is a multiple of 2.
TEXT ·groupedQ2G64NEONx1(SB), NOSPLIT, $0-56
	ARGS
unit:
	PAIRUNIT(2)
group:
	PAIRGROUP
	SUBS $1, R9, R9
	BNE group
	WHOLESCALES
	ENDALL
	SUBS $2, R4, R4
	BNE unit
	RET

// func groupedQ2G128NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += d·(… + Σ·a), by units of 4 groups; groups is a multiple of 4.
TEXT ·groupedQ2G128NEONx1(SB), NOSPLIT, $0-56
	ARGS
unit:
	PAIRUNIT(4)
group:
	PAIRGROUP
	SUBS $1, R9, R9
	BNE group
	WHOLESCALES
	ENDALL
	SUBS $4, R4, R4
	BNE unit
	RET
