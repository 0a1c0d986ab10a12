//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// The elementwise routines take n, a positive multiple of 8, and allow dst to
// be an input.

// func addNEON(dst, a, b *float32, n int)
// dst = a + b.
TEXT ·addNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD n+24(FP), R9
loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FADD(0, 0, 2)
	FADD(1, 1, 3)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func mulNEON(dst, a, b *float32, n int)
// dst = a · b.
TEXT ·mulNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD n+24(FP), R9
loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FMUL(0, 0, 2)
	FMUL(1, 1, 3)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func mulAddNEON(dst, a, b *float32, n int)
// dst += a · b.
TEXT ·mulAddNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD n+24(FP), R9
loop:
	VLD1 (R0), [V4.S4, V5.S4]
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FMLA(4, 0, 2)
	FMLA(5, 1, 3)
	VST1.P [V4.S4, V5.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func butterflyNEON(lo, hi *float32, n int)
// lo, hi = lo + hi, lo - hi.
TEXT ·butterflyNEON(SB), NOSPLIT, $0-24
	MOVD lo+0(FP), R0
	MOVD hi+8(FP), R1
	MOVD n+16(FP), R9
loop:
	VLD1 (R0), [V0.S4, V1.S4]
	VLD1 (R1), [V2.S4, V3.S4]
	FADD(4, 0, 2)
	FADD(5, 1, 3)
	FSUB(6, 0, 2)
	FSUB(7, 1, 3)
	VST1.P [V4.S4, V5.S4], 32(R0)
	VST1.P [V6.S4, V7.S4], 32(R1)
	SUBS $8, R9, R9
	BNE loop
	RET

// func scaleNEON(dst, x *float32, s float32, n int)
// dst = x · s.
TEXT ·scaleNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	FMOVS s+16(FP), F16
	MOVD n+24(FP), R9
loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FMULL(0, 0, 16, 0)
	FMULL(1, 1, 16, 0)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func axpyNEON(dst, x *float32, s float32, n int)
// dst += s · x.
TEXT ·axpyNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	FMOVS s+16(FP), F16
	MOVD n+24(FP), R9
loop:
	VLD1 (R0), [V0.S4, V1.S4]
	VLD1.P 32(R1), [V2.S4, V3.S4]
	FMLAL(0, 2, 16, 0)
	FMLAL(1, 3, 16, 0)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func scaleMulNEON(dst, x, w *float32, s float32, n int)
// dst = (x · s) · w.
TEXT ·scaleMulNEON(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD w+16(FP), R2
	FMOVS s+24(FP), F16
	MOVD n+32(FP), R9
loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FMULL(0, 0, 16, 0)
	FMULL(1, 1, 16, 0)
	FMUL(0, 0, 2)
	FMUL(1, 1, 3)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func relu2NEON(dst, gate, up *float32, n int)
// dst = max(gate, 0)² · up.
TEXT ·relu2NEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD gate+8(FP), R1
	MOVD up+16(FP), R2
	MOVD n+24(FP), R9
	VEOR V4.B16, V4.B16, V4.B16
loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FMAX(0, 0, 4)
	FMAX(1, 1, 4)
	FMUL(0, 0, 0)
	FMUL(1, 1, 1)
	FMUL(0, 0, 2)
	FMUL(1, 1, 3)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func f32ToF16NEON(dst *uint16, src *float32, n int)
TEXT ·f32ToF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R9
loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FCVTN(2, 0)
	FCVTN2(2, 1)
	VST1.P [V2.H8], 16(R0)
	SUBS $8, R9, R9
	BNE loop
	RET

// func ropeHalvesNEON(lo, hi, cos, sin *float32, n int)
// (lo, hi) = (lo·cos - hi·sin, lo·sin + hi·cos).
TEXT ·ropeHalvesNEON(SB), NOSPLIT, $0-40
	MOVD lo+0(FP), R0
	MOVD hi+8(FP), R1
	MOVD cos+16(FP), R2
	MOVD sin+24(FP), R3
	MOVD n+32(FP), R9
loop:
	VLD1 (R0), [V0.S4, V1.S4]
	VLD1 (R1), [V2.S4, V3.S4]
	VLD1.P 32(R2), [V4.S4, V5.S4]
	VLD1.P 32(R3), [V6.S4, V7.S4]
	FMUL(16, 0, 4)
	FMUL(17, 1, 5)
	FMLS(16, 2, 6)
	FMLS(17, 3, 7)
	FMUL(18, 0, 6)
	FMUL(19, 1, 7)
	FMLA(18, 2, 4)
	FMLA(19, 3, 5)
	VST1.P [V16.S4, V17.S4], 32(R0)
	VST1.P [V18.S4, V19.S4], 32(R1)
	SUBS $8, R9, R9
	BNE loop
	RET

// func ropePairsNEON(x, cos, sin *float32, n int)
// The same for n neighbours (x[2i], x[2i+1]); n is a positive multiple of 4.
TEXT ·ropePairsNEON(SB), NOSPLIT, $0-32
	MOVD x+0(FP), R0
	MOVD cos+8(FP), R2
	MOVD sin+16(FP), R3
	MOVD n+24(FP), R9
loop:
	VLD2 (R0), [V0.S4, V1.S4]
	VLD1.P 16(R2), [V4.S4]
	VLD1.P 16(R3), [V6.S4]
	FMUL(16, 0, 4)
	FMLS(16, 1, 6)
	FMUL(17, 0, 6)
	FMLA(17, 1, 4)
	VST2.P [V16.S4, V17.S4], 32(R0)
	SUBS $4, R9, R9
	BNE loop
	RET

// func dotNEON(a, b *float32, n int) float32
// Σ a·b in 16 partial sums. n is a positive multiple of 16.
TEXT ·dotNEON(SB), NOSPLIT, $0-28
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD n+16(FP), R9
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
loop:
	VLD1.P 64(R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	FMLA(16, 0, 4)
	FMLA(17, 1, 5)
	FMLA(18, 2, 6)
	FMLA(19, 3, 7)
	SUBS $16, R9, R9
	BNE loop
	FADD(16, 16, 18)
	FADD(17, 17, 19)
	FADD(16, 16, 17)
	FADDP(16, 16, 16)
	FADDP(16, 16, 16)
	FMOVS F16, ret+24(FP)
	RET

// func sumSquaresNEON(x *float32, n int) float64
// Σ x² in 8 partial sums of float64. n is a positive multiple of 8.
TEXT ·sumSquaresNEON(SB), NOSPLIT, $0-24
	MOVD x+0(FP), R0
	MOVD n+8(FP), R9
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
loop:
	VLD1.P 32(R0), [V0.S4, V1.S4]
	FCVTL_D2(2, 0)
	FCVTL2_D2(3, 0)
	FCVTL_D2(4, 1)
	FCVTL2_D2(5, 1)
	FMLA_D2(16, 2, 2)
	FMLA_D2(17, 3, 3)
	FMLA_D2(18, 4, 4)
	FMLA_D2(19, 5, 5)
	SUBS $8, R9, R9
	BNE loop
	FADD_D2(16, 16, 18)
	FADD_D2(17, 17, 19)
	FADD_D2(16, 16, 17)
	VMOV V16.D[1], V17.D[0]
	FADDD F17, F16
	FMOVD F16, ret+16(FP)
	RET

// func maxNEON(x *float32, n int) float32
// The largest element, NaNs passed over. n is a positive multiple of 8.
TEXT ·maxNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R0
	MOVD n+8(FP), R9
	MOVD $0xff800000, R1 // -Inf
	VDUP R1, V2.S4
loop:
	VLD1.P 32(R0), [V0.S4, V1.S4]
	FMAXNM(2, 2, 0)
	FMAXNM(2, 2, 1)
	SUBS $8, R9, R9
	BNE loop
	FMAXNMV(2, 2)
	FMOVS F2, ret+16(FP)
	RET

// func absMaxNEON(x *float32, n int) float32
// The largest magnitude, NaNs passed over. n is a positive multiple of 8.
TEXT ·absMaxNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R0
	MOVD n+8(FP), R9
	VEOR V2.B16, V2.B16, V2.B16
loop:
	VLD1.P 32(R0), [V0.S4, V1.S4]
	FABS(0, 0)
	FABS(1, 1)
	FMAXNM(2, 2, 0)
	FMAXNM(2, 2, 1)
	SUBS $8, R9, R9
	BNE loop
	FMAXNMV(2, 2)
	FMOVS F2, ret+16(FP)
	RET

// func sumWithinNEON(part *[16]float32, x *float32, lo, hi float32, n int) int
// part[j] = Σ of the x[16i+j] above lo and up to hi; returns how many they are.
// n is a positive multiple of 16.
TEXT ·sumWithinNEON(SB), NOSPLIT, $0-40
	MOVD part+0(FP), R0
	MOVD x+8(FP), R1
	FMOVS lo+16(FP), F16
	FMOVS hi+20(FP), F17
	VDUP V16.S[0], V16.S4
	VDUP V17.S[0], V17.S4
	MOVD n+24(FP), R9
	VEOR V4.B16, V4.B16, V4.B16 // sums
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	VEOR V20.B16, V20.B16, V20.B16 // counts

#define WITHIN(x, X, sum) \
	FCMGT(18, x, 16) \
	FCMGE(19, 17, x) \
	VAND V19.B16, V18.B16, V18.B16 \
	SUBI(20, 20, 18) \
	VAND V18.B16, X.B16, X.B16 \
	FADD(sum, sum, x)

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	WITHIN(0, V0, 4)
	WITHIN(1, V1, 5)
	WITHIN(2, V2, 6)
	WITHIN(3, V3, 7)
	SUBS $16, R9, R9
	BNE loop
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R0)
	ADDV(20, 20)
	VMOV V20.S[0], R2
	MOVD R2, ret+32(FP)
	RET
