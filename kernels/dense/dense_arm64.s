//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Dense columns of 16 rows times float32 activations:
//
//	V0-V15   sums, 4 registers a token     V16-V19  a column
//	R0 y     R1 weights    R2-R5 activations of up to four tokens

#define SHLL(d, n) RR(0x2e613800, d, n)
#define SHLL2(d, n) RR(0x6e613800, d, n)

#define F32COLUMN VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]

#define HALFCOLUMN(widen, widen2) \
	VLD1.P 32(R1), [V20.H8, V21.H8] \
	widen(16, 20) \
	widen2(17, 20) \
	widen(18, 21) \
	widen2(19, 21)

#define F16COLUMN HALFCOLUMN(FCVTL, FCVTL2)
#define BF16COLUMN HALFCOLUMN(SHLL, SHLL2)

#define TOKEN(v, x) \
	FMOVS.P 4(x), F22 \
	FMLAL(v, 16, 22, 0) \
	FMLAL((v)+1, 17, 22, 0) \
	FMLAL((v)+2, 18, 22, 0) \
	FMLAL((v)+3, 19, 22, 0)

#define ADDTO(v) \
	VLD1 (R0), [V16.S4, V17.S4, V18.S4, V19.S4] \
	FADD(16, 16, v) \
	FADD(17, 17, (v)+1) \
	FADD(18, 18, (v)+2) \
	FADD(19, 19, (v)+3) \
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R0) \
	ADD R6, R0

#define ZERO4(a, b, c, d) \
	VEOR a.B16, a.B16, a.B16 \
	VEOR b.B16, b.B16, b.B16 \
	VEOR c.B16, c.B16, c.B16 \
	VEOR d.B16, d.B16, d.B16

#define ARGS \
	MOVD y+0(FP), R0 \
	MOVD ld+8(FP), R6 \
	LSL $2, R6, R6 \
	MOVD w+16(FP), R1 \
	MOVD x+24(FP), R2 \
	MOVD ldx+32(FP), R7 \
	ADD R7<<2, R2, R3 \
	ADD R7<<2, R3, R4 \
	ADD R7<<2, R4, R5 \
	MOVD k+40(FP), R8

// func denseF32NEONx1(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[1 of ld][16] += x[1 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF32NEONx1(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
column:
	F32COLUMN
	TOKEN(0, R2)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	RET

// func denseF32NEONx2(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[2 of ld][16] += x[2 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF32NEONx2(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
column:
	F32COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	RET

// func denseF32NEONx3(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[3 of ld][16] += x[3 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF32NEONx3(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
column:
	F32COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	TOKEN(8, R4)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	ADDTO(8)
	RET

// func denseF32NEONx4(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[4 of ld][16] += x[4 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF32NEONx4(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)
column:
	F32COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	TOKEN(8, R4)
	TOKEN(12, R5)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	ADDTO(8)
	ADDTO(12)
	RET

// func denseF16NEONx1(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[1 of ld][16] += x[1 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF16NEONx1(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
column:
	F16COLUMN
	TOKEN(0, R2)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	RET

// func denseF16NEONx2(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[2 of ld][16] += x[2 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF16NEONx2(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
column:
	F16COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	RET

// func denseF16NEONx3(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[3 of ld][16] += x[3 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF16NEONx3(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
column:
	F16COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	TOKEN(8, R4)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	ADDTO(8)
	RET

// func denseF16NEONx4(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[4 of ld][16] += x[4 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseF16NEONx4(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)
column:
	F16COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	TOKEN(8, R4)
	TOKEN(12, R5)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	ADDTO(8)
	ADDTO(12)
	RET

// func denseBF16NEONx1(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[1 of ld][16] += x[1 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseBF16NEONx1(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
column:
	BF16COLUMN
	TOKEN(0, R2)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	RET

// func denseBF16NEONx2(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[2 of ld][16] += x[2 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseBF16NEONx2(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
column:
	BF16COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	RET

// func denseBF16NEONx3(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[3 of ld][16] += x[3 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseBF16NEONx3(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
column:
	BF16COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	TOKEN(8, R4)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	ADDTO(8)
	RET

// func denseBF16NEONx4(y *float32, ld int, w *byte, x *float32, ldx, k int)
// y[4 of ld][16] += x[4 of ldx][k] · w[k][16]. k is positive.
TEXT ·denseBF16NEONx4(SB), NOSPLIT, $0-48
	ARGS
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)
column:
	BF16COLUMN
	TOKEN(0, R2)
	TOKEN(4, R3)
	TOKEN(8, R4)
	TOKEN(12, R5)
	SUBS $1, R8, R8
	BNE column
	ADDTO(0)
	ADDTO(4)
	ADDTO(8)
	ADDTO(12)
	RET
