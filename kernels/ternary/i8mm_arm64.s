//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Weights are unfolded to bytes once for many tokens, into panels that stay in L1, and
// multiplied by SMMLA: 8 columns of two tokens times 8 columns of two rows, 32 products
// an instruction. 8 columns are one position of a trit in two blocks, so that the bytes of
// a row in both stand side by side. A panel is of 8 rows:
//
//	[pair of blocks][g][8 rows][8]

DATA noBlock<>+0(SB)/8, $0
DATA noBlock<>+8(SB)/8, $0
DATA noBlock<>+16(SB)/8, $0
DATA noBlock<>+24(SB)/8, $0
GLOBL noBlock<>(SB), RODATA|NOPTR, $32

// Of 8 rows, the bytes of a block at R1 and of the next at R4, to V0-V3: two rows each.
#define BESIDE \
	VLD1 (R1), [V4.B16, V5.B16] \
	VLD1 (R4), [V6.B16, V7.B16] \
	ZIP1_S4(0, 4, 6) \
	ZIP2_S4(1, 4, 6) \
	ZIP1_S4(2, 5, 7) \
	ZIP2_S4(3, 5, 7)

#define PUT VST1.P [V4.B16, V5.B16, V6.B16, V7.B16], 64(R0)

#define PANELARGS \
	MOVD panel+0(FP), R0 \
	MOVD w+8(FP), R1 \
	MOVD blocks+16(FP), R3 \
	ADD $256, R1, R4 \
	CMP $1, R3 \
	BEQ last

// A last block without a second one stands beside zeros, whose trits meet
// activations of zero.
#define PANELNEXT \
	ADD $512, R1 \
	ADD $512, R4 \
	SUBS $2, R3, R3 \
	BEQ end \
	CMP $1, R3 \
	BNE pair \
last: \
	MOVD $noBlock<>(SB), R4 \
	B pair \
end: \
	RET

#define FIELD(shift) \
	USHR(4, 0, shift); USHR(5, 1, shift); USHR(6, 2, shift); USHR(7, 3, shift)
#define MASK(s) \
	AND_B16(4, s, 16); AND_B16(5, (s)+1, 16); AND_B16(6, (s)+2, 16); AND_B16(7, (s)+3, 16)

// The sums of two tokens with 8 rows are four registers: token, token, by pairs of rows.
// In memory they stand as [token][64 rows].
#define TAKE(at, v) \
	FMOVQ (at)(R0), F24; FMOVQ (at+16)(R0), F25 \
	FMOVQ (at+256)(R0), F26; FMOVQ (at+272)(R0), F27 \
	ZIP1_D2(v, 24, 26); ZIP2_D2((v)+1, 24, 26) \
	ZIP1_D2((v)+2, 25, 27); ZIP2_D2((v)+3, 25, 27)

#define GIVE(at, v) \
	ZIP1_D2(24, v, (v)+1); ZIP2_D2(26, v, (v)+1) \
	ZIP1_D2(25, (v)+2, (v)+3); ZIP2_D2(27, (v)+2, (v)+3) \
	FMOVQ F24, (at)(R0); FMOVQ F25, (at+16)(R0) \
	FMOVQ F26, (at+256)(R0); FMOVQ F27, (at+272)(R0)

// R8 goes through the octets, up to R3.
#define TILEARGS \
	MOVD sums+0(FP), R0 \
	MOVD panel+8(FP), R1 \
	MOVD act+16(FP), R2 \
	MOVD stride+24(FP), R7 \
	MOVD octets+32(FP), R3 \
	LSL $4, R3, R3 \
	MOVD $0, R8

#define WEIGHTS VLD1.P 64(R1), [V16.B16, V17.B16, V18.B16, V19.B16]

#define NEXTOCTET \
	ADD $16, R8, R8 \
	CMP R3, R8 \
	BNE octet

#define TIMES(v, act) SMMLA(v, act, 16); SMMLA((v)+1, act, 17); SMMLA((v)+2, act, 18); SMMLA((v)+3, act, 19)

// func panelI2(panel *int8, w *byte, blocks int)
// A panel of trits + 1, of 8 rows at w. blocks is positive.
TEXT ·panelI2(SB), NOSPLIT, $0-24
	VMOVI $3, V16.B16
	PANELARGS
pair:
	PRFM 2048(R1), PLDL1KEEP
	BESIDE
	MASK(0)
	PUT
	FIELD(2)
	MASK(4)
	PUT
	FIELD(4)
	MASK(4)
	PUT
	FIELD(6)
	PUT
	CMP $1, R3
	BEQ end
	PANELNEXT

// Of x in V0-V3: x mod 27 stays, x / 27 to V24-V27. SPLIT of sdot_arm64.h says how.
#define SPLITROWS(x, d) \
	UMULL(d, x, 28) \
	UMULL2(5, x, 28) \
	UZP2(d, d, 5) \
	USHR(d, d, 1) \
	MLS(x, d, 29)

#define LOOK(tbl, table, s) \
	tbl(4, table, s); tbl(5, table, (s)+1); tbl(6, table, (s)+2); tbl(7, table, (s)+3)

// func panelI1(panel *int8, w *byte, blocks int)
// A panel of trits, of 8 rows at w. blocks is positive.
TEXT ·panelI1(SB), NOSPLIT, $0-24
	MOVD $·tritTables(SB), R8
	VLD1.P 64(R8), [V18.B16, V19.B16, V20.B16, V21.B16]
	VLD1 (R8), [V22.B16, V23.B16]
	VMOVI $19, V28.B16
	VMOVI $27, V29.B16
	PANELARGS
pair:
	PRFM 2048(R1), PLDL1KEEP
	BESIDE
	SPLITROWS(0, 24)
	SPLITROWS(1, 25)
	SPLITROWS(2, 26)
	SPLITROWS(3, 27)
	LOOK(TBL2, 18, 0)
	PUT
	LOOK(TBL2, 20, 0)
	PUT
	LOOK(TBL2, 22, 0)
	PUT
	LOOK(TBL, 18, 24)
	PUT
	LOOK(TBL, 20, 24)
	PUT
	CMP $1, R3
	BEQ end
	PANELNEXT

// func i8mmTile8(sums *int32, panel, act *int8, stride, octets int)
// sums[8][8 rows of 64] += panel · act[4 of stride][octets][2][8]. Needs FEAT_I8MM; octets
// is positive. Exact up to 2^23 columns.
TEXT ·i8mmTile8(SB), NOSPLIT, $0-40
	TILEARGS
	ADD R2, R7, R4
	ADD R4, R7, R5
	ADD R5, R7, R6
	TAKE(0, 0)
	TAKE(512, 4)
	TAKE(1024, 8)
	TAKE(1536, 12)
octet:
	WEIGHTS
	LDRQ(20, 2, 8)
	LDRQ(21, 4, 8)
	LDRQ(22, 5, 8)
	LDRQ(23, 6, 8)
	TIMES(0, 20)
	TIMES(4, 21)
	TIMES(8, 22)
	TIMES(12, 23)
	NEXTOCTET
	GIVE(0, 0)
	GIVE(512, 4)
	GIVE(1024, 8)
	GIVE(1536, 12)
	RET

// func i8mmTile4(sums *int32, panel, act *int8, stride, octets int)
// The same of 4 tokens.
TEXT ·i8mmTile4(SB), NOSPLIT, $0-40
	TILEARGS
	ADD R2, R7, R4
	TAKE(0, 0)
	TAKE(512, 4)
octet:
	WEIGHTS
	LDRQ(20, 2, 8)
	LDRQ(21, 4, 8)
	TIMES(0, 20)
	TIMES(4, 21)
	NEXTOCTET
	GIVE(0, 0)
	GIVE(512, 4)
	RET

// func i8mmTile2(sums *int32, panel, act *int8, stride, octets int)
// The same of 2 tokens.
TEXT ·i8mmTile2(SB), NOSPLIT, $0-40
	TILEARGS
	TAKE(0, 0)
octet:
	WEIGHTS
	LDRQ(20, 2, 8)
	TIMES(0, 20)
	NEXTOCTET
	GIVE(0, 0)
	RET
