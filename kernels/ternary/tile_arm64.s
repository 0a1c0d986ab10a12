//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Panels (panel_arm64.s) times int8 activations: by SMMLA 8 columns of two tokens times 8
// columns of two rows, 32 products an instruction; by SDOT 16.

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

// R8 goes through the activations, up to R3.
#define TILEARGS \
	MOVD sums+0(FP), R0 \
	MOVD panel+8(FP), R1 \
	MOVD act+16(FP), R2 \
	MOVD stride+24(FP), R7 \
	MOVD octets+32(FP), R3 \
	LSL $4, R3, R3 \
	MOVD $0, R8

#define WEIGHTS VLD1.P 64(R1), [V16.B16, V17.B16, V18.B16, V19.B16]

#define NEXT \
	ADD $16, R8, R8 \
	CMP R3, R8 \
	BNE next

#define TIMES(v, act) SMMLA(v, act, 16); SMMLA((v)+1, act, 17); SMMLA((v)+2, act, 18); SMMLA((v)+3, act, 19)

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
next:
	WEIGHTS
	LDRQ(20, 2, 8)
	LDRQ(21, 4, 8)
	LDRQ(22, 5, 8)
	LDRQ(23, 6, 8)
	TIMES(0, 20)
	TIMES(4, 21)
	TIMES(8, 22)
	TIMES(12, 23)
	NEXT
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
next:
	WEIGHTS
	LDRQ(20, 2, 8)
	LDRQ(21, 4, 8)
	TIMES(0, 20)
	TIMES(4, 21)
	NEXT
	GIVE(0, 0)
	GIVE(512, 4)
	RET

// func i8mmTile2(sums *int32, panel, act *int8, stride, octets int)
// The same of 2 tokens.
TEXT ·i8mmTile2(SB), NOSPLIT, $0-40
	TILEARGS
	TAKE(0, 0)
next:
	WEIGHTS
	LDRQ(20, 2, 8)
	TIMES(0, 20)
	NEXT
	GIVE(0, 0)
	RET

// Of one token, 16 rows.
#define TAKE16(at, a, b, c, d) FMOVQ (at)(R0), a; FMOVQ (at+16)(R0), b; FMOVQ (at+32)(R0), c; FMOVQ (at+48)(R0), d
#define GIVE16(at, a, b, c, d) FMOVQ a, (at)(R0); FMOVQ b, (at+16)(R0); FMOVQ c, (at+32)(R0); FMOVQ d, (at+48)(R0)
#define DOTS(v, lane) SDOT(v, 16, 20, lane); SDOT((v)+1, 17, 20, lane); SDOT((v)+2, 18, 20, lane); SDOT((v)+3, 19, 20, lane)

// func sdotTile4(sums *int32, panel, act *int8, quads int)
// sums[4][16 rows of 64] += panel · act[quads][4][4]. Needs FEAT_DotProd; quads is positive.
// Exact up to 2^23 columns.
TEXT ·sdotTile4(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD panel+8(FP), R1
	MOVD act+16(FP), R2
	MOVD quads+24(FP), R3
	LSL $4, R3, R3
	MOVD $0, R8
	TAKE16(0, F0, F1, F2, F3)
	TAKE16(256, F4, F5, F6, F7)
	TAKE16(512, F8, F9, F10, F11)
	TAKE16(768, F12, F13, F14, F15)
next:
	WEIGHTS
	LDRQ(20, 2, 8)
	DOTS(0, 0)
	DOTS(4, 1)
	DOTS(8, 2)
	DOTS(12, 3)
	NEXT
	GIVE16(0, F0, F1, F2, F3)
	GIVE16(256, F4, F5, F6, F7)
	GIVE16(512, F8, F9, F10, F11)
	GIVE16(768, F12, F13, F14, F15)
	RET
