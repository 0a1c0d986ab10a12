//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// Grouped codes times int8 activations by SDOT. A vector of codes is 4 rows ×
// 4 columns, a band 4 vectors:
//
//	V0-V7, V8-V15  sums of the first and the second token: 4 vectors, or two
//	               times 4 where the halves of a group have their own scales
//	V16-V19        activations, two registers a token
//	R0 y   R1 codes   R2 scales   R3 activations   R4 groups left
//	R5, R6 activations and y of the second token
//	R10, R11 sums of a superblock

#define DOT1(v, src, half, lane) SDOT(v, src, 16+(half), lane)
#define DOT2(v, src, half, lane) SDOT(v, src, 16+(half), lane); SDOT((v)+8, src, 18+(half), lane)

#define ACTS1 VLD1 (R3), [V16.B16, V17.B16]
#define ACTS2 VLD1 (R3), [V16.B16, V17.B16]; VLD1 (R5), [V18.B16, V19.B16]

// Sums start from the activations' word at off: what takes the codes' offset out.
#define FROM(acts, off, v0, v1, v2, v3) \
	MOVW off(acts), R7 \
	VDUP R7, v0.S4 \
	VMOV v0.B16, v1.B16 \
	VMOV v0.B16, v2.B16 \
	VMOV v0.B16, v3.B16

#define ZERO(v) VEOR v.B16, v.B16, v.B16

#define NIBBLES(dot, v, p) \
	VLD1.P 16(R1), [V20.B16] \
	VAND V24.B16, V20.B16, V21.B16 \
	USHR(22, 20, 4) \
	dot(v, 21, 0, p) \
	dot(v, 22, 1, p)

#define NIBBLEGROUP(dot) \
	NIBBLES(dot, 0, 0); NIBBLES(dot, 1, 0); NIBBLES(dot, 2, 0); NIBBLES(dot, 3, 0) \
	NIBBLES(dot, 0, 1); NIBBLES(dot, 1, 1); NIBBLES(dot, 2, 1); NIBBLES(dot, 3, 1) \
	NIBBLES(dot, 0, 2); NIBBLES(dot, 1, 2); NIBBLES(dot, 2, 2); NIBBLES(dot, 3, 2) \
	NIBBLES(dot, 0, 3); NIBBLES(dot, 1, 3); NIBBLES(dot, 2, 3); NIBBLES(dot, 3, 3)

// The same with codes that V31 translates.
#define LEVELS(dot, v, p) \
	VLD1.P 16(R1), [V20.B16] \
	VAND V24.B16, V20.B16, V21.B16 \
	USHR(22, 20, 4) \
	VTBL V21.B16, [V31.B16], V21.B16 \
	VTBL V22.B16, [V31.B16], V22.B16 \
	dot(v, 21, 0, p) \
	dot(v, 22, 1, p)

#define LEVELGROUP(dot) \
	LEVELS(dot, 0, 0); LEVELS(dot, 1, 0); LEVELS(dot, 2, 0); LEVELS(dot, 3, 0) \
	LEVELS(dot, 0, 1); LEVELS(dot, 1, 1); LEVELS(dot, 2, 1); LEVELS(dot, 3, 1) \
	LEVELS(dot, 0, 2); LEVELS(dot, 1, 2); LEVELS(dot, 2, 2); LEVELS(dot, 3, 2) \
	LEVELS(dot, 0, 3); LEVELS(dot, 1, 3); LEVELS(dot, 2, 3); LEVELS(dot, 3, 3)

#define BYTES(dot, half, lane) \
	VLD1.P 64(R1), [V20.B16, V21.B16, V22.B16, V23.B16] \
	dot(0, 20, half, lane) \
	dot(1, 21, half, lane) \
	dot(2, 22, half, lane) \
	dot(3, 23, half, lane)

#define BYTEGROUP(dot) \
	BYTES(dot, 0, 0); BYTES(dot, 0, 1); BYTES(dot, 0, 2); BYTES(dot, 0, 3) \
	BYTES(dot, 1, 0); BYTES(dot, 1, 1); BYTES(dot, 1, 2); BYTES(dot, 1, 3)

// Six bits: the nibbles of V20 below the pairs of V26 (first half) and V27,
// brought to bits 4 and 5 by shift.
#define SIXBITS(dot, v, p, shift, bits) \
	FMOVQ (64*p+16*v)(R1), F20 \
	VAND V24.B16, V20.B16, V21.B16 \
	shift(23, 26, bits) \
	VAND V25.B16, V23.B16, V23.B16 \
	VORR V23.B16, V21.B16, V21.B16 \
	USHR(22, 20, 4) \
	shift(23, 27, bits) \
	VAND V25.B16, V23.B16, V23.B16 \
	VORR V23.B16, V22.B16, V22.B16 \
	dot(v, 21, 0, p) \
	dot((v)+4, 22, 1, p)

#define SIXBITROWS(dot, v) \
	FMOVQ (256+16*v)(R1), F26 \
	FMOVQ (320+16*v)(R1), F27 \
	SIXBITS(dot, v, 0, SHL, 4) \
	SIXBITS(dot, v, 1, SHL, 2) \
	SIXBITS(dot, v, 2, SHL, 0) \
	SIXBITS(dot, v, 3, USHR, 2)

// V26-V29 = 16 float16 scales at at.
#define SCALES(at) \
	VLD1 (at), [V20.H8, V21.H8] \
	FCVTL(26, 20) \
	FCVTL2(27, 20) \
	FCVTL(28, 21) \
	FCVTL2(29, 21)

// V16-V19 = the same.
#define MINIMUMS(at) \
	VLD1 (at), [V20.H8, V21.H8] \
	FCVTL(16, 20) \
	FCVTL2(17, 20) \
	FCVTL(18, 21) \
	FCVTL2(19, 21)

// V16-V19 = 16 small integers at off(R8).
#define SMALL(off, widen8, widen8hi, widen4, widen4hi) \
	FMOVQ off(R8), F20 \
	widen8(21, 20) \
	widen8hi(22, 20) \
	widen4(16, 21) \
	widen4hi(17, 21) \
	widen4(18, 22) \
	widen4hi(19, 22)

#define MUL4(v) \
	MUL(v, v, 16) \
	MUL((v)+1, (v)+1, 17) \
	MUL((v)+2, (v)+2, 18) \
	MUL((v)+3, (v)+3, 19)

#define CONVERTED(v) \
	SCVTF(v, v) \
	SCVTF((v)+1, (v)+1) \
	SCVTF((v)+2, (v)+2) \
	SCVTF((v)+3, (v)+3)

// The sums from v on become d·Σ, y gets them times the activations' scale.
#define SCALED(v) \
	CONVERTED(v) \
	FMUL(v, v, 26) \
	FMUL((v)+1, (v)+1, 27) \
	FMUL((v)+2, (v)+2, 28) \
	FMUL((v)+3, (v)+3, 29)

#define ADDTO(y, acts, v) \
	FMOVS 32(acts), F30 \
	VLD1 (y), [V20.S4, V21.S4, V22.S4, V23.S4] \
	FMLAL(20, v, 30, 0) \
	FMLAL(21, (v)+1, 30, 0) \
	FMLAL(22, (v)+2, 30, 0) \
	FMLAL(23, (v)+3, 30, 0) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (y)

// Sums of a superblock, in the frame, start from 0 and go to y times its scale.
#define SUPERBEGIN(sums) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (sums)

#define SUPEREND(y, sums) \
	VLD1 (sums), [V16.S4, V17.S4, V18.S4, V19.S4] \
	VLD1 (y), [V20.S4, V21.S4, V22.S4, V23.S4] \
	FMLA(20, 16, 26) \
	FMLA(21, 17, 27) \
	FMLA(22, 18, 28) \
	FMLA(23, 19, 29) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (y)

// Less the least value of a group's weights, in V16-V19, times Σq.
#define LESS(acts, v) \
	FMOVS 36(acts), F30 \
	FMLSL(v, 16, 30, 0) \
	FMLSL((v)+1, 17, 30, 0) \
	FMLSL((v)+2, 18, 30, 0) \
	FMLSL((v)+3, 19, 30, 0)

#define VADD4(v) \
	RRR(0x4ea08400, v, v, (v)+4) \
	RRR(0x4ea08400, (v)+1, (v)+1, (v)+5) \
	RRR(0x4ea08400, (v)+2, (v)+2, (v)+6) \
	RRR(0x4ea08400, (v)+3, (v)+3, (v)+7)

#define ARGS \
	MOVD y+0(FP), R0 \
	MOVD ld+8(FP), R6 \
	ADD R6<<2, R0, R6 \
	MOVD codes+16(FP), R1 \
	MOVD scales+24(FP), R2 \
	MOVD acts+32(FP), R3 \
	MOVD lda+40(FP), R5 \
	ADD R3, R5, R5 \
	MOVD groups+48(FP), R4 \
	VMOVI $15, V24.B16 \
	VMOVI $48, V25.B16

// func groupedQ4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += (d·Σ(code-8)·q)·a, group by group.
TEXT ·groupedQ4NEONx1(SB), NOSPLIT, $0-56
	ARGS
group:
	ACTS1
	FROM(R3, 44, V0, V1, V2, V3)
	NIBBLEGROUP(DOT1)
	SCALES(R2)
	ADD $32, R2
	SCALED(0)
	ADDTO(R0, R3, 0)
	ADD $64, R3
	SUBS $1, R4, R4
	BNE group
	RET

// func groupedQ8NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += (d·Σcode·q)·a, group by group.
TEXT ·groupedQ8NEONx1(SB), NOSPLIT, $0-56
	ARGS
group:
	ACTS1
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	BYTEGROUP(DOT1)
	SCALES(R2)
	ADD $32, R2
	SCALED(0)
	ADDTO(R0, R3, 0)
	ADD $64, R3
	SUBS $1, R4, R4
	BNE group
	RET

// func groupedQ4MNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += (d·(sc·Σcode·q) - (dmin·m)·Σq)·a; groups is a multiple of 8.
TEXT ·groupedQ4MNEONx1(SB), NOSPLIT, $0-56
	ARGS
unit:
	ADD $64, R2, R8 // sc and m of the groups
	MOVD $8, R9
group:
	ACTS1
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	NIBBLEGROUP(DOT1)
	SMALL(0, UXTL_H8, UXTL2_H8, UXTL_S4, UXTL2_S4)
	MUL4(0)
	SCALES(R2)
	SCALED(0)
	SMALL(16, UXTL_H8, UXTL2_H8, UXTL_S4, UXTL2_S4)
	ADD $32, R2, R7
	SCALES(R7)
	SCALED(16)
	LESS(R3, 0)
	ADDTO(R0, R3, 0)
	ADD $64, R3
	ADD $32, R8
	SUBS $1, R9, R9
	BNE group
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func groupedQ41NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += (d·Σcode·q - m·Σq)·a, group by group.
TEXT ·groupedQ41NEONx1(SB), NOSPLIT, $0-56
	ARGS
group:
	ACTS1
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	NIBBLEGROUP(DOT1)
	SCALES(R2)
	SCALED(0)
	ADD $32, R2
	MINIMUMS(R2)
	ADD $32, R2
	LESS(R3, 0)
	ADDTO(R0, R3, 0)
	ADD $64, R3
	SUBS $1, R4, R4
	BNE group
	RET

// func groupedQ6NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += d·(… + (sc0·Σ0 + sc1·Σ1)·a) of (code-32)·q, by superblocks; groups is a multiple of 8.
TEXT ·groupedQ6NEONx1(SB), NOSPLIT, $64-56
	ARGS
	MOVD $sums-64(SP), R10
unit:
	ADD $32, R2, R8 // two sc a group
	MOVD $8, R9
	ZERO(V20); ZERO(V21); ZERO(V22); ZERO(V23)
	SUPERBEGIN(R10)
group:
	ACTS1
	FROM(R3, 56, V0, V1, V2, V3)
	FROM(R3, 60, V4, V5, V6, V7)
	SIXBITROWS(DOT1, 0)
	SIXBITROWS(DOT1, 1)
	SIXBITROWS(DOT1, 2)
	SIXBITROWS(DOT1, 3)
	ADD $384, R1
	SMALL(0, SXTL_H8, SXTL2_H8, SXTL_S4, SXTL2_S4)
	MUL4(0)
	SMALL(16, SXTL_H8, SXTL2_H8, SXTL_S4, SXTL2_S4)
	MUL4(4)
	VADD4(0)
	CONVERTED(0)
	ADDTO(R10, R3, 0)
	ADD $64, R3
	ADD $32, R8
	SUBS $1, R9, R9
	BNE group
	SCALES(R2)
	SUPEREND(R0, R10)
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func groupedQ4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += (d·Σ(code-8)·q)·a, group by group.
TEXT ·groupedQ4NEONx2(SB), NOSPLIT, $0-56
	ARGS
group:
	ACTS2
	FROM(R3, 44, V0, V1, V2, V3)
	FROM(R5, 44, V8, V9, V10, V11)
	NIBBLEGROUP(DOT2)
	SCALES(R2)
	ADD $32, R2
	SCALED(0)
	SCALED(8)
	ADDTO(R0, R3, 0)
	ADDTO(R6, R5, 8)
	ADD $64, R3
	ADD $64, R5
	SUBS $1, R4, R4
	BNE group
	RET

// func groupedQ8NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += (d·Σcode·q)·a, group by group.
TEXT ·groupedQ8NEONx2(SB), NOSPLIT, $0-56
	ARGS
group:
	ACTS2
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	ZERO(V8); ZERO(V9); ZERO(V10); ZERO(V11)
	BYTEGROUP(DOT2)
	SCALES(R2)
	ADD $32, R2
	SCALED(0)
	SCALED(8)
	ADDTO(R0, R3, 0)
	ADDTO(R6, R5, 8)
	ADD $64, R3
	ADD $64, R5
	SUBS $1, R4, R4
	BNE group
	RET

// func groupedQ4MNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += (d·(sc·Σcode·q) - (dmin·m)·Σq)·a; groups is a multiple of 8.
TEXT ·groupedQ4MNEONx2(SB), NOSPLIT, $0-56
	ARGS
unit:
	ADD $64, R2, R8 // sc and m of the groups
	MOVD $8, R9
group:
	ACTS2
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	ZERO(V8); ZERO(V9); ZERO(V10); ZERO(V11)
	NIBBLEGROUP(DOT2)
	SMALL(0, UXTL_H8, UXTL2_H8, UXTL_S4, UXTL2_S4)
	MUL4(0)
	MUL4(8)
	SCALES(R2)
	SCALED(0)
	SCALED(8)
	SMALL(16, UXTL_H8, UXTL2_H8, UXTL_S4, UXTL2_S4)
	ADD $32, R2, R7
	SCALES(R7)
	SCALED(16)
	LESS(R3, 0)
	LESS(R5, 8)
	ADDTO(R0, R3, 0)
	ADDTO(R6, R5, 8)
	ADD $64, R3
	ADD $64, R5
	ADD $32, R8
	SUBS $1, R9, R9
	BNE group
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// func groupedQ41NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += (d·Σcode·q - m·Σq)·a, group by group.
TEXT ·groupedQ41NEONx2(SB), NOSPLIT, $0-56
	ARGS
group:
	ACTS2
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	ZERO(V8); ZERO(V9); ZERO(V10); ZERO(V11)
	NIBBLEGROUP(DOT2)
	SCALES(R2)
	SCALED(0)
	SCALED(8)
	ADD $32, R2
	MINIMUMS(R2)
	ADD $32, R2
	LESS(R3, 0)
	LESS(R5, 8)
	ADDTO(R0, R3, 0)
	ADDTO(R6, R5, 8)
	ADD $64, R3
	ADD $64, R5
	SUBS $1, R4, R4
	BNE group
	RET

// func groupedQ6NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += d·(… + (sc0·Σ0 + sc1·Σ1)·a) of (code-32)·q, by superblocks; groups is a multiple of 8.
TEXT ·groupedQ6NEONx2(SB), NOSPLIT, $128-56
	ARGS
	MOVD $sums-128(SP), R10
	ADD $64, R10, R11
unit:
	ADD $32, R2, R8 // two sc a group
	MOVD $8, R9
	ZERO(V20); ZERO(V21); ZERO(V22); ZERO(V23)
	SUPERBEGIN(R10)
	SUPERBEGIN(R11)
group:
	ACTS2
	FROM(R3, 56, V0, V1, V2, V3)
	FROM(R5, 56, V8, V9, V10, V11)
	FROM(R3, 60, V4, V5, V6, V7)
	FROM(R5, 60, V12, V13, V14, V15)
	SIXBITROWS(DOT2, 0)
	SIXBITROWS(DOT2, 1)
	SIXBITROWS(DOT2, 2)
	SIXBITROWS(DOT2, 3)
	ADD $384, R1
	SMALL(0, SXTL_H8, SXTL2_H8, SXTL_S4, SXTL2_S4)
	MUL4(0)
	MUL4(8)
	SMALL(16, SXTL_H8, SXTL2_H8, SXTL_S4, SXTL2_S4)
	MUL4(4)
	MUL4(12)
	VADD4(0)
	VADD4(8)
	CONVERTED(0)
	CONVERTED(8)
	ADDTO(R10, R3, 0)
	ADDTO(R11, R5, 8)
	ADD $64, R3
	ADD $64, R5
	ADD $32, R8
	SUBS $1, R9, R9
	BNE group
	SCALES(R2)
	SUPEREND(R0, R10)
	SUPEREND(R6, R11)
	MOVD R8, R2
	SUBS $8, R4, R4
	BNE unit
	RET

// What the codes of FP4 stand for.
DATA levelsFP4<>+0(SB)/8, $0x0c08060403020100
DATA levelsFP4<>+8(SB)/8, $0xf4f8fafcfdfeff00
GLOBL levelsFP4<>(SB), RODATA|NOPTR, $16

#define FP4ARGS \
	ARGS \
	MOVD $levelsFP4<>(SB), R7 \
	VLD1 (R7), [V31.B16]

// func groupedFP4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[1 of ld][16] += (d·Σe2m1[code]·q)·a, group by group.
TEXT ·groupedFP4NEONx1(SB), NOSPLIT, $0-56
	FP4ARGS
group:
	ACTS1
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	LEVELGROUP(DOT1)
	SCALES(R2)
	ADD $32, R2
	SCALED(0)
	ADDTO(R0, R3, 0)
	ADD $64, R3
	SUBS $1, R4, R4
	BNE group
	RET

// func groupedFP4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
// y[2 of ld][16] += (d·Σe2m1[code]·q)·a, group by group.
TEXT ·groupedFP4NEONx2(SB), NOSPLIT, $0-56
	FP4ARGS
group:
	ACTS2
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3)
	ZERO(V8); ZERO(V9); ZERO(V10); ZERO(V11)
	LEVELGROUP(DOT2)
	SCALES(R2)
	ADD $32, R2
	SCALED(0)
	SCALED(8)
	ADDTO(R0, R3, 0)
	ADDTO(R6, R5, 8)
	ADD $64, R3
	ADD $64, R5
	SUBS $1, R4, R4
	BNE group
	RET
