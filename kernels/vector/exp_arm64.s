//go:build arm64 && !purego

#include "textflag.h"
#include "neon_arm64.h"

// exp(x) = 2ⁿ·p(r), n = x/ln 2 rounded, r = x - n·ln 2 in two parts, p the
// polynomial of Cephes' expf (Moshier), accurate to about 1e-7. 2ⁿ is applied
// in two halves, either of which fits an exponent. Constants stand in V20-V31.

DATA ·expConstants<>+0(SB)/4, $0x3fb8aa3b // 1.4426950408889634: log2(e)
DATA ·expConstants<>+4(SB)/4, $0x3f318000 // 0.693359375: high part of ln 2
DATA ·expConstants<>+8(SB)/4, $0xb95e8083 // -0.00021219444: low part of ln 2
DATA ·expConstants<>+12(SB)/4, $0x39506967 // 0.000198756915: r^7 ...
DATA ·expConstants<>+16(SB)/4, $0x3ab743ce // 0.0013981999507
DATA ·expConstants<>+20(SB)/4, $0x3c088908 // 0.0083334519073
DATA ·expConstants<>+24(SB)/4, $0x3d2aa9c1 // 0.041665795894
DATA ·expConstants<>+28(SB)/4, $0x3e2aaaaa // 0.16666665459
DATA ·expConstants<>+32(SB)/4, $0x3f000000 // 0.5: ... r^2
DATA ·expConstants<>+36(SB)/4, $0x3f800000 // 1.0
DATA ·expConstants<>+40(SB)/4, $0x42c80000 // 100.0: largest argument: its exponential is infinite
DATA ·expConstants<>+44(SB)/4, $0xc2aeac4f // -87.33654: least argument: below it 0
GLOBL ·expConstants<>(SB), RODATA|NOPTR, $48

#define CONSTANTS \
	MOVD $·expConstants<>(SB), R8 \
	VLD1R.P 4(R8), [V20.S4] \
	VLD1R.P 4(R8), [V21.S4] \
	VLD1R.P 4(R8), [V22.S4] \
	VLD1R.P 4(R8), [V23.S4] \
	VLD1R.P 4(R8), [V24.S4] \
	VLD1R.P 4(R8), [V25.S4] \
	VLD1R.P 4(R8), [V26.S4] \
	VLD1R.P 4(R8), [V27.S4] \
	VLD1R.P 4(R8), [V28.S4] \
	VLD1R.P 4(R8), [V29.S4] \
	VLD1R.P 4(R8), [V30.S4] \
	VLD1R.P 4(R8), [V31.S4]

// x = exp(x), t and u are lost. NaN stays NaN.
#define EXP(x, t, u, Vu) \
	FMIN(x, x, 30) \
	FCMGT(16, 31, x) \
	FMUL(t, x, 20) \
	FRINTN(t, t) \
	FMLS(x, t, 21) \
	FMLS(x, t, 22) \
	FCVTNS(t, t) \
	VMOV V24.B16, Vu.B16 \
	FMLA(u, x, 23) \
	VMOV V25.B16, V17.B16 \
	FMLA(17, x, u) \
	VMOV V26.B16, Vu.B16 \
	FMLA(u, x, 17) \
	VMOV V27.B16, V17.B16 \
	FMLA(17, x, u) \
	VMOV V28.B16, Vu.B16 \
	FMLA(u, x, 17) \
	FADD(17, x, 29) \
	FMUL(x, x, x) \
	FMLA(17, x, u) \
	SSHRI(u, t, 1) \
	SUBI(t, t, u) \
	SHLI(t, t, 23) \
	SHLI(u, u, 23) \
	ADDI(t, t, 29) \
	ADDI(u, u, 29) \
	FMUL(17, 17, t) \
	FMUL(17, 17, u) \
	BIC(x, 17, 16)

// func expSumNEON(sums *[8]float32, dst, x *float32, shift float32, n int)
// dst = exp(x - shift); sums[i mod 8] += dst[i]. n is a positive multiple of 8.
TEXT ·expSumNEON(SB), NOSPLIT, $0-40
	MOVD sums+0(FP), R3
	MOVD dst+8(FP), R0
	MOVD x+16(FP), R1
	MOVD shift+24(FP), R4
	VDUP R4, V18.S4
	MOVD n+32(FP), R9
	CONSTANTS
	VLD1 (R3), [V4.S4, V5.S4]
loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FSUB(0, 0, 18)
	FSUB(1, 1, 18)
	EXP(0, 2, 3, V3)
	EXP(1, 6, 7, V7)
	FADD(4, 4, 0)
	FADD(5, 5, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R9, R9
	BNE loop
	VST1 [V4.S4, V5.S4], (R3)
	RET

// func swigluNEON(dst, gate, up *float32, n int)
// dst = gate / (1 + exp(-gate)) · up. n is a positive multiple of 4.
TEXT ·swigluNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD gate+8(FP), R1
	MOVD up+16(FP), R2
	MOVD n+24(FP), R9
	CONSTANTS
loop:
	VLD1.P 16(R1), [V0.S4]
	FNEG(1, 0)
	EXP(1, 2, 3, V3)
	FADD(1, 1, 29)
	FDIV(0, 0, 1)
	VLD1.P 16(R2), [V4.S4]
	FMUL(0, 0, 4)
	VST1.P [V0.S4], 16(R0)
	SUBS $4, R9, R9
	BNE loop
	RET
