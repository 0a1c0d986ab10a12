//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Weights are unfolded to bytes once for many tokens, into panels that stay in L1.
// Panels for SMMLA are of 8 rows and of 8 columns at a time: one position of a trit in two
// blocks, whose bytes of a row stand side by side:
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

// The four trits of V0-V3, and 1.
#define I2FIELDS \
	MASK(0); PUT \
	FIELD(2); MASK(4); PUT \
	FIELD(4); MASK(4); PUT \
	FIELD(6); PUT

// func panelI2(panel *int8, w *byte, blocks int)
// A panel of trits + 1, of 8 rows at w. blocks is positive.
TEXT ·panelI2(SB), NOSPLIT, $0-24
	VMOVI $3, V16.B16
	PANELARGS
pair:
	PRFM 2048(R1), PLDL1KEEP
	BESIDE
	I2FIELDS
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

#define I1CONSTANTS \
	MOVD $·tritTables(SB), R8 \
	VLD1.P 64(R8), [V18.B16, V19.B16, V20.B16, V21.B16] \
	VLD1 (R8), [V22.B16, V23.B16] \
	VMOVI $19, V28.B16 \
	VMOVI $27, V29.B16

// The five trits of V0-V3.
#define I1FIELDS \
	SPLITROWS(0, 24); SPLITROWS(1, 25); SPLITROWS(2, 26); SPLITROWS(3, 27) \
	LOOK(TBL2, 18, 0); PUT \
	LOOK(TBL2, 20, 0); PUT \
	LOOK(TBL2, 22, 0); PUT \
	LOOK(TBL, 18, 24); PUT \
	LOOK(TBL, 20, 24); PUT

// func panelI1(panel *int8, w *byte, blocks int)
// A panel of trits, of 8 rows at w. blocks is positive.
TEXT ·panelI1(SB), NOSPLIT, $0-24
	I1CONSTANTS
	PANELARGS
pair:
	PRFM 2048(R1), PLDL1KEEP
	BESIDE
	I1FIELDS
	CMP $1, R3
	BEQ end
	PANELNEXT

// Panels for SDOT are of 16 rows, and of one position of a trit after the other:
//
//	[blocks][g][16 rows][4]

#define ROWS16 VLD1 (R1), [V0.B16, V1.B16, V2.B16, V3.B16]

#define NEXTBLOCK \
	ADD $256, R1 \
	SUBS $1, R3, R3 \
	BNE block

// func quadsI2(panel *int8, w *byte, blocks int)
// A panel of trits + 1, of 16 rows at w. blocks is positive.
TEXT ·quadsI2(SB), NOSPLIT, $0-24
	VMOVI $3, V16.B16
	MOVD panel+0(FP), R0
	MOVD w+8(FP), R1
	MOVD blocks+16(FP), R3
block:
	PRFM 2048(R1), PLDL1KEEP
	ROWS16
	I2FIELDS
	NEXTBLOCK
	RET

// func quadsI1(panel *int8, w *byte, blocks int)
// A panel of trits, of 16 rows at w. blocks is positive.
TEXT ·quadsI1(SB), NOSPLIT, $0-24
	I1CONSTANTS
	MOVD panel+0(FP), R0
	MOVD w+8(FP), R1
	MOVD blocks+16(FP), R3
block:
	PRFM 2048(R1), PLDL1KEEP
	ROWS16
	I1FIELDS
	NEXTBLOCK
	RET
