// What the tiles of one and two bits share, by SDOT and by SMMLA.
//
//	R0 y   R1 codes   R2 scales   R3 activations   R4 groups left   R9 of the unit
//	R5, R11, R12 and R6, R13, R14  activations and y of the other tokens
//	R10      sums of a unit [token][16]
//	V24 = 24, V25 = 1/8, V26-V29 scales, V30, V31 free

#define NEXT1 ADD $64, R3
#define NEXT2 NEXT1; ADD $64, R5
#define NEXT3 NEXT2; ADD $64, R11
#define NEXT4 NEXT3; ADD $64, R12

// v = -8·Σq of a token.
#define OFFSET(acts, v) \
	MOVW 44(acts), R7 \
	VDUP R7, v.S4

#define CLEARUNIT(at) \
	FMOVQ F31, (at)(R10); FMOVQ F31, (at+16)(R10); FMOVQ F31, (at+32)(R10); FMOVQ F31, (at+48)(R10)

#define BEGIN1 VEOR V31.B16, V31.B16, V31.B16; CLEARUNIT(0)
#define BEGIN2 BEGIN1; CLEARUNIT(64)
#define BEGIN3 BEGIN2; CLEARUNIT(128)
#define BEGIN4 BEGIN3; CLEARUNIT(192)

// V26-V29 = d/8 of the unit.
#define SCALES \
	VLD1.P 32(R2), [V20.H8, V21.H8] \
	FCVTL(26, 20); FCVTL2(27, 20); FCVTL(28, 21); FCVTL2(29, 21) \
	FMUL(26, 26, 25); FMUL(27, 27, 25); FMUL(28, 28, 25); FMUL(29, 29, 25)

#define ADDROW(y, at) \
	ADD $at, R10, R7 \
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4] \
	VLD1 (y), [V20.S4, V21.S4, V22.S4, V23.S4] \
	FMLA(20, 16, 26); FMLA(21, 17, 27); FMLA(22, 18, 28); FMLA(23, 19, 29) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (y)

#define END1 SCALES; ADDROW(R0, 0)
#define END2 END1; ADDROW(R6, 64)
#define END3 END2; ADDROW(R13, 128)
#define END4 END3; ADDROW(R14, 192)

#define ARGS \
	MOVD y+0(FP), R0 \
	MOVD ld+8(FP), R7 \
	ADD R7<<2, R0, R6 \
	ADD R7<<2, R6, R13 \
	ADD R7<<2, R13, R14 \
	MOVD codes+16(FP), R1 \
	MOVD scales+24(FP), R2 \
	MOVD acts+32(FP), R3 \
	MOVD lda+40(FP), R7 \
	ADD R3, R7, R5 \
	ADD R5, R7, R11 \
	ADD R11, R7, R12 \
	MOVD groups+48(FP), R4 \
	VMOVI $24, V24.B16 \
	MOVD $0x3e000000, R7 \
	VDUP R7, V25.S4
