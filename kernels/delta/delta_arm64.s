//go:build !purego

#include "textflag.h"
#include "neon_arm64.h"

// The parts of a chunk, as the kernels for amd64 compute them. A tile's row is four
// registers.

#define CLEAR(v) VEOR v.B16, v.B16, v.B16

#define CLEARLOW \
	CLEAR(V16); CLEAR(V17); CLEAR(V18); CLEAR(V19) \
	CLEAR(V20); CLEAR(V21); CLEAR(V22); CLEAR(V23)

#define CLEARHIGH \
	CLEAR(V24); CLEAR(V25); CLEAR(V26); CLEAR(V27) \
	CLEAR(V28); CLEAR(V29); CLEAR(V30); CLEAR(V31)

// Four registers from s on times a number of register f, added to four from d on.
#define ROW(d, s, f, lane) \
	FMLAL(d, s, f, lane); FMLAL((d)+1, (s)+1, f, lane); FMLAL((d)+2, (s)+2, f, lane); FMLAL((d)+3, (s)+3, f, lane)

#define PRODUCTARGS \
	MOVD panel+0(FP), R0 \
	MOVD width+8(FP), R1 \
	MOVD q+16(FP), R2 \
	MOVD k+24(FP), R3 \
	MOVD stride+32(FP), R4 \
	MOVD out+40(FP), R5 \
	MOVD ld+48(FP), R6 \
	MOVD n+56(FP), R7

#define BOTH(lane) \
	VLD1.P 64(R10), [V4.S4, V5.S4, V6.S4, V7.S4] \
	VLD1.P 64(R10), [V8.S4, V9.S4, V10.S4, V11.S4] \
	ROW(16, 4, 0, lane); ROW(20, 8, 0, lane) \
	ROW(24, 4, 1, lane); ROW(28, 8, 1, lane)

#define ONE(lane) \
	VLD1.P 64(R10), [V4.S4, V5.S4, V6.S4, V7.S4] \
	ROW(16, 4, 0, lane); ROW(24, 4, 1, lane)

// func productsNEON(panel *float32, width int, q, k *float32, stride int, out *float32, ld, n int)
// out[n][2][32] = products of as many k[width], then q, with the columns of panel[width][32].
TEXT ·productsNEON(SB), NOSPLIT, $0-64
	PRODUCTARGS
token:
	CLEARLOW
	CLEARHIGH
	MOVD R0, R10
	MOVD R1, R11
	MOVD R3, R12
	MOVD R2, R13
rows:
	VLD1.P 16(R12), [V0.S4]
	VLD1.P 16(R13), [V1.S4]
	BOTH(0)
	BOTH(1)
	BOTH(2)
	BOTH(3)
	SUBS $4, R11, R11
	BNE rows
	ADD R6, R5, R14
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R5)
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R5)
	ADD R6, R14, R5
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R14)
	VST1 [V28.S4, V29.S4, V30.S4, V31.S4], (R14)
	ADD R4, R2, R2
	ADD R4, R3, R3
	SUBS $1, R7, R7
	BNE token
	RET

// func productsOneNEON(panel *float32, width int, q, k *float32, stride int, out *float32, ld, n int)
// As productsNEON, of panel[width][16].
TEXT ·productsOneNEON(SB), NOSPLIT, $0-64
	PRODUCTARGS
token:
	CLEARLOW
	CLEARHIGH
	MOVD R0, R10
	MOVD R1, R11
	MOVD R3, R12
	MOVD R2, R13
rows:
	VLD1.P 16(R12), [V0.S4]
	VLD1.P 16(R13), [V1.S4]
	ONE(0)
	ONE(1)
	ONE(2)
	ONE(3)
	SUBS $4, R11, R11
	BNE rows
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R5)
	ADD R6, R5, R5
	VST1 [V24.S4, V25.S4, V26.S4, V27.S4], (R5)
	ADD R6, R5, R5
	ADD R4, R2, R2
	ADD R4, R3, R3
	SUBS $1, R7, R7
	BNE token
	RET

#define EACH(op, d, n, m) op(d, n, m); op((d)+1, (n)+1, m); op((d)+2, (n)+2, m); op((d)+3, (n)+3, m)

// func correctNEON(all *float32, width, tiles, token int, mix, products *float32, ld int, v *float32)
// Of so many tiles, one after the other, of corrections all[16][width], with mix = key[16],
// query[16], before, beta: all[token] = (v - (before·products + Σ key[i]·all[i]))·beta over
// i < token, and v = before·products + Σ query[i]·all[i] + query[token]·all[token], the
// products of queries standing ld bytes after those of keys.
TEXT ·correctNEON(SB), NOSPLIT, $0-64
	MOVD all+0(FP), R0
	MOVD width+8(FP), R1
	LSL $2, R1, R1
	MOVD tiles+16(FP), R2
	MOVD token+24(FP), R3
	MOVD mix+32(FP), R4
	MOVD products+40(FP), R5
	MOVD ld+48(FP), R6
	MOVD v+56(FP), R7
	ADD $64, R4, R8
	ADD R3<<2, R8, R9
	VLD1R (R9), [V14.S4]
	ADD $128, R4, R9
	VLD1R (R9), [V12.S4]
	ADD $132, R4, R9
	VLD1R (R9), [V13.S4]
tile:
	ADD R6, R5, R10
	VLD1.P 64(R5), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1 (R10), [V20.S4, V21.S4, V22.S4, V23.S4]
	EACH(FMUL, 16, 16, 12)
	EACH(FMUL, 20, 20, 12)
	MOVD R0, R10
	MOVD R4, R11
	MOVD R8, R12
	MOVD R3, R13
	CBZ R13, end
earlier:
	VLD1R.P 4(R11), [V0.S4]
	VLD1R.P 4(R12), [V1.S4]
	VLD1 (R10), [V4.S4, V5.S4, V6.S4, V7.S4]
	EACH(FMLA, 16, 4, 0)
	EACH(FMLA, 20, 4, 1)
	ADD R1, R10, R10
	SUBS $1, R13, R13
	BNE earlier
end:
	VLD1 (R7), [V4.S4, V5.S4, V6.S4, V7.S4]
	FSUB(4, 4, 16)
	FSUB(5, 5, 17)
	FSUB(6, 6, 18)
	FSUB(7, 7, 19)
	EACH(FMUL, 4, 4, 13)
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R10)
	EACH(FMLA, 20, 4, 14)
	VST1.P [V20.S4, V21.S4, V22.S4, V23.S4], 64(R7)
	ADD $64, R0, R0
	SUBS $1, R2, R2
	BNE tile
	RET

// func foldNEON(tile *float32, stride, width int, keys, d *float32, before float32)
// tile[width of stride bytes][16] = before·tile + Σ keys[i]ᵀ·d[i] over i < 16, in this
// order, of rows keys[16][width] and d[16][width], of which it takes 16 columns.
TEXT ·foldNEON(SB), NOSPLIT, $0-44
	MOVD tile+0(FP), R0
	MOVD stride+8(FP), R1
	MOVD width+16(FP), R2
	MOVD keys+24(FP), R3
	MOVD d+32(FP), R4
	FMOVS before+40(FP), F12
	LSL $2, R2, R5
rows:
	MOVD R0, R10
	VLD1 (R10), [V16.S4, V17.S4, V18.S4, V19.S4]
	ADD R1, R10, R10
	VLD1 (R10), [V20.S4, V21.S4, V22.S4, V23.S4]
	ADD R1, R10, R10
	VLD1 (R10), [V24.S4, V25.S4, V26.S4, V27.S4]
	ADD R1, R10, R10
	VLD1 (R10), [V28.S4, V29.S4, V30.S4, V31.S4]
	FMULL(16, 16, 12, 0)
	FMULL(17, 17, 12, 0)
	FMULL(18, 18, 12, 0)
	FMULL(19, 19, 12, 0)
	FMULL(20, 20, 12, 0)
	FMULL(21, 21, 12, 0)
	FMULL(22, 22, 12, 0)
	FMULL(23, 23, 12, 0)
	FMULL(24, 24, 12, 0)
	FMULL(25, 25, 12, 0)
	FMULL(26, 26, 12, 0)
	FMULL(27, 27, 12, 0)
	FMULL(28, 28, 12, 0)
	FMULL(29, 29, 12, 0)
	FMULL(30, 30, 12, 0)
	FMULL(31, 31, 12, 0)
	MOVD R3, R11
	MOVD R4, R12
	MOVD $16, R13
tokens:
	VLD1 (R11), [V0.S4]
	VLD1 (R12), [V4.S4, V5.S4, V6.S4, V7.S4]
	ROW(16, 4, 0, 0)
	ROW(20, 4, 0, 1)
	ROW(24, 4, 0, 2)
	ROW(28, 4, 0, 3)
	ADD R5, R11, R11
	ADD R5, R12, R12
	SUBS $1, R13, R13
	BNE tokens
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R0)
	ADD R1, R0, R0
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R0)
	ADD R1, R0, R0
	VST1 [V24.S4, V25.S4, V26.S4, V27.S4], (R0)
	ADD R1, R0, R0
	VST1 [V28.S4, V29.S4, V30.S4, V31.S4], (R0)
	ADD R1, R0, R0
	ADD $16, R3, R3
	SUBS $4, R2, R2
	BNE rows
	RET

// func spaceNEON(state *float32, length int, b, c *float32, x, y, decay *float32)
// A token through state[length][16]: state = decay·state + b[i]·x of row i, and y = Σ c[i]·state, in the
// order of rows. length is positive.
// V0-V3 x, V4-V7 y, V8 the decay, V9 b[i], V10 c[i], V16-V19 a row.
TEXT ·spaceNEON(SB), NOSPLIT, $0-56
	MOVD state+0(FP), R0
	MOVD length+8(FP), R1
	MOVD b+16(FP), R2
	MOVD c+24(FP), R3
	MOVD x+32(FP), R4
	MOVD y+40(FP), R5
	MOVD decay+48(FP), R6
	VLD1 (R4), [V0.S4, V1.S4, V2.S4, V3.S4]
	CLEAR(V4); CLEAR(V5); CLEAR(V6); CLEAR(V7)
	VLD1R (R6), [V8.S4]
row:
	VLD1R.P 4(R2), [V9.S4]
	VLD1R.P 4(R3), [V10.S4]
	VLD1 (R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	EACH(FMUL, 16, 16, 8)
	ROW(16, 0, 9, 0)
	ROW(4, 16, 10, 0)
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	SUBS $1, R1, R1
	BNE row
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R5)
	RET
