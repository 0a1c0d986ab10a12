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

// The pairs of bits of V12-V15, shifted to bits 4 and 5, over the nibbles of V4-V7.
#define HIGHS(shift, panel) \
	EACH(USHL_B16, 24, 12, shift) \
	EACH(AND_B16, 24, 24, 19) \
	ORR_B16(4, 4, 24); ORR_B16(5, 5, 25); ORR_B16(6, 6, 26); ORR_B16(7, 7, 27) \
	EACH(SUB_B16, 4, 4, 20) \
	PUT(panel)

#define SIXROWS(at, panel) \
	BESIDE(at, at+64, 0) \
	BESIDE(at+128, at+192, 8) \
	BESIDE(at+256, at+256, 12) \
	EACH(AND_B16, 4, 0, 16); HIGHS(17, panel) \
	EACH(AND_B16, 4, 8, 16); HIGHS(18, panel) \
	BESIDE(at+320, at+320, 12) \
	EACH(USHR, 4, 0, 4); HIGHS(17, panel) \
	EACH(USHR, 4, 8, 4); HIGHS(18, panel)

// func panelSixBits(panel *int8, codes *byte, groups int)
// code - 32, two panels of nibbles with pairs of high bits.
TEXT ·panelSixBits(SB), NOSPLIT, $0-24
	PANELARGS
	MOVD $0x0202020204040404, R5
	VDUP R5, V17.D2
	MOVD $0xfefefefe00000000, R5
	VDUP R5, V18.D2
	VMOVI $15, V16.B16
	VMOVI $48, V19.B16
	VMOVI $32, V20.B16
group:
	PRFM 2048(R1), PLDL1KEEP
	SIXROWS(0, R0)
	SIXROWS(32, R4)
	ADD $384, R1
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

// Four vectors of 4 rows, of the bytes V28.
#define WIDEN(d, h8, h8hi, s4, s4hi) \
	h8(29, 28); h8hi(30, 28) \
	s4(d, 29); s4hi((d)+1, 29); s4((d)+2, 30); s4hi((d)+3, 30)
#define UNSIGNED(d) WIDEN(d, UXTL_H8, UXTL2_H8, UXTL_S4, UXTL2_S4)
#define SIGNED(d) WIDEN(d, SXTL_H8, SXTL2_H8, SXTL_S4, SXTL2_S4)

// V(s), V(s+1) for one panel, the next two for the other.
#define PUTBOTH(s) \
	FORBOTH(4, s); FORBOTH(6, (s)+1); PUT(R0) \
	FORBOTH(4, (s)+2); FORBOTH(6, (s)+3); PUT(R4)

// func panelScalesQ4M(panel, scales *byte, groups int)
// [groups]{sc int32, d float32, dmin·m float32}[4][2][2 rows] for 8 rows, then for the others.
TEXT ·panelScalesQ4M(SB), NOSPLIT, $0-24
	MOVD panel+0(FP), R0
	MOVD scales+8(FP), R1
	MOVD groups+16(FP), R3
	ADD R3<<7, R0, R4
	ADD R3<<6, R4, R4
unit:
	VLD1.P 64(R1), [V16.H8, V17.H8, V18.H8, V19.H8]
	FCVTL(20, 16); FCVTL2(21, 16); FCVTL(22, 17); FCVTL2(23, 17)
	FCVTL(24, 18); FCVTL2(25, 18); FCVTL(26, 19); FCVTL2(27, 19)
	MOVD $8, R9
group:
	VLD1.P 16(R1), [V28.B16]
	UNSIGNED(0)
	PUTBOTH(0)
	PUTBOTH(20)
	VLD1.P 16(R1), [V28.B16]
	UNSIGNED(0)
	SCVTF(0, 0); SCVTF(1, 1); SCVTF(2, 2); SCVTF(3, 3)
	FMUL(0, 0, 24); FMUL(1, 1, 25); FMUL(2, 2, 26); FMUL(3, 3, 27)
	PUTBOTH(0)
	SUBS $1, R9, R9
	BNE group
	SUBS $8, R3, R3
	BNE unit
	RET

// func panelScalesQ41(panel, scales *byte, groups int)
// The same with an sc of one.
TEXT ·panelScalesQ41(SB), NOSPLIT, $0-24
	MOVD panel+0(FP), R0
	MOVD scales+8(FP), R1
	MOVD groups+16(FP), R3
	ADD R3<<7, R0, R4
	ADD R3<<6, R4, R4
	MOVD $1, R5
	VDUP R5, V0.S4
	VDUP R5, V1.S4
	VDUP R5, V2.S4
	VDUP R5, V3.S4
group:
	VLD1.P 64(R1), [V16.H8, V17.H8, V18.H8, V19.H8]
	FCVTL(20, 16); FCVTL2(21, 16); FCVTL(22, 17); FCVTL2(23, 17)
	FCVTL(24, 18); FCVTL2(25, 18); FCVTL(26, 19); FCVTL2(27, 19)
	PUTBOTH(0)
	PUTBOTH(20)
	PUTBOTH(24)
	SUBS $1, R3, R3
	BNE group
	RET

// func panelScalesQ6(panel, scales *byte, groups int)
// [groups/8]{sc int32[8][2 halves][4][2][2 rows], d float32[8]} for 8 rows, then for the others.
TEXT ·panelScalesQ6(SB), NOSPLIT, $0-24
	MOVD panel+0(FP), R0
	MOVD scales+8(FP), R1
	MOVD groups+16(FP), R3
	ADD R3<<7, R0, R4
	ADD R3<<2, R4, R4 // 32 bytes each 8 groups
unit:
	VLD1.P 32(R1), [V16.H8, V17.H8]
	MOVD $16, R9
half:
	VLD1.P 16(R1), [V28.B16]
	SIGNED(0)
	PUTBOTH(0)
	SUBS $1, R9, R9
	BNE half
	FCVTL(0, 16); FCVTL2(1, 16); FCVTL(2, 17); FCVTL2(3, 17)
	VST1.P [V0.S4, V1.S4], 32(R0)
	VST1.P [V2.S4, V3.S4], 32(R4)
	SUBS $8, R3, R3
	BNE unit
	RET
