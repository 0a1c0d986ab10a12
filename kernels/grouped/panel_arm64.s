//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Codes are unfolded to bytes once for many tokens, what a code of zero weight is taken
// off. A panel is of 8 rows:
//
//	[groups][4 times 8 columns][8 rows][8]
//
// and what unfolds a band makes two, one after the other.
//
//	R0 panel   R1 codes   R3 groups left   R4 panel of the other 8 rows
//	V0-V3, V8-V11  packed codes of 8 rows, two a register

#define PANELARGS \
	MOVD panel+0(FP), R0 \
	MOVD codes+8(FP), R1 \
	MOVD groups+16(FP), R3 \
	ADD R3<<8, R0, R4

#define PUT(panel) VST1.P [V4.B16, V5.B16, V6.B16, V7.B16], 64(panel)

// Words of 8 rows at a and at b, side by side, to four registers from d on.
#define BESIDE(a, b, d) \
	FMOVQ (a)(R1), F4; FMOVQ (b)(R1), F5 \
	FMOVQ (a+16)(R1), F6; FMOVQ (b+16)(R1), F7 \
	ZIP1_S4(d, 4, 5); ZIP2_S4((d)+1, 4, 5) \
	ZIP1_S4((d)+2, 6, 7); ZIP2_S4((d)+3, 6, 7)

#define EACH(op, d, n, m) op(d, n, m); op((d)+1, (n)+1, m); op((d)+2, (n)+2, m); op((d)+3, (n)+3, m)

#define BITS(mask, panel) \
	EACH(CMTST, 4, 0, mask) \
	ORN_B16(4, 20, 4); ORN_B16(5, 20, 5); ORN_B16(6, 20, 6); ORN_B16(7, 20, 7) \
	PUT(panel)

#define BITROWS(at, panel) \
	BESIDE(at, at, 0) \
	BITS(16, panel); BITS(17, panel); BITS(18, panel); BITS(19, panel)

// func panelBits(panel *int8, codes *byte, groups int)
// 2·bit - 1, two panels of bits.
TEXT ·panelBits(SB), NOSPLIT, $0-24
	PANELARGS
	MOVD $0x0202020201010101, R5
	VDUP R5, V16.D2
	SHL(17, 16, 2)
	SHL(18, 16, 4)
	SHL(19, 16, 6)
	VMOVI $1, V20.B16
group:
	BITROWS(0, R0)
	BITROWS(32, R4)
	ADD $64, R1
	SUBS $1, R3, R3
	BNE group
	RET

#define PAIRS(shift, panel) \
	EACH(USHL_B16, 4, 0, shift) \
	EACH(AND_B16, 4, 4, 18) \
	EACH(SUB_B16, 4, 4, 19) \
	PUT(panel)

#define PAIRROWS(at, panel) \
	BESIDE(at, at, 0) \
	PAIRS(16, panel); PAIRS(17, panel)

// func panelPairs(panel *int8, codes *byte, groups int)
// code - 1, two panels of pairs of bits.
TEXT ·panelPairs(SB), NOSPLIT, $0-24
	PANELARGS
	MOVD $0xfefefefe00000000, R5
	VDUP R5, V16.D2
	MOVD $0xfafafafafcfcfcfc, R5
	VDUP R5, V17.D2
	VMOVI $3, V18.B16
	VMOVI $1, V19.B16
group:
	PAIRROWS(0, R0); PAIRROWS(64, R0)
	PAIRROWS(32, R4); PAIRROWS(96, R4)
	ADD $128, R1
	SUBS $1, R3, R3
	BNE group
	RET

#define LEVELS(panel) \
	TBL(4, 17, 4); TBL(5, 17, 5); TBL(6, 17, 6); TBL(7, 17, 7) \
	PUT(panel)

#define NIBBLEROWS(at, panel) \
	BESIDE(at, at+64, 0) \
	BESIDE(at+128, at+192, 8) \
	EACH(AND_B16, 4, 0, 16); LEVELS(panel) \
	EACH(AND_B16, 4, 8, 16); LEVELS(panel) \
	EACH(USHR, 4, 0, 4); LEVELS(panel) \
	EACH(USHR, 4, 8, 4); LEVELS(panel)

// func panelNibbles(panel *int8, codes *byte, groups int, levels *int8)
// levels[code], two panels of nibbles.
TEXT ·panelNibbles(SB), NOSPLIT, $0-32
	PANELARGS
	MOVD levels+24(FP), R5
	VLD1 (R5), [V17.B16]
	VMOVI $15, V16.B16
group:
	PRFM 2048(R1), PLDL1KEEP
	NIBBLEROWS(0, R0)
	NIBBLEROWS(32, R4)
	ADD $256, R1
	SUBS $1, R3, R3
	BNE group
	RET

#define BYTEROWS(at, panel) \
	BESIDE(at, at+64, 0); VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(panel)

// func panelBytes(panel *int8, codes *byte, groups int)
// Two panels of bytes.
TEXT ·panelBytes(SB), NOSPLIT, $0-24
	PANELARGS
group:
	PRFM 2048(R1), PLDL1KEEP
	BYTEROWS(0, R0); BYTEROWS(128, R0); BYTEROWS(256, R0); BYTEROWS(384, R0)
	BYTEROWS(32, R4); BYTEROWS(160, R4); BYTEROWS(288, R4); BYTEROWS(416, R4)
	ADD $512, R1
	SUBS $1, R3, R3
	BNE group
	RET

// Scales of 4 rows, V(s), as two registers: two rows for a token, and again for the other.
#define FORBOTH(d, s) ZIP1_D2(d, s, s); ZIP2_D2((d)+1, s, s)

// func panelScales(panel, scales *byte, groups int)
// float32[groups][4][2][2 rows] for 8 rows, then for the others, of float16[groups][16].
TEXT ·panelScales(SB), NOSPLIT, $0-24
	MOVD panel+0(FP), R0
	MOVD scales+8(FP), R1
	MOVD groups+16(FP), R3
	ADD R3<<6, R0, R4
group:
	VLD1.P 32(R1), [V16.H8, V17.H8]
	FCVTL(0, 16); FCVTL2(1, 16)
	FORBOTH(4, 0); FORBOTH(6, 1)
	PUT(R0)
	FCVTL(2, 17); FCVTL2(3, 17)
	FORBOTH(4, 2); FORBOTH(6, 3)
	PUT(R4)
	SUBS $1, R3, R3
	BNE group
	RET
