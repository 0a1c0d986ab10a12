// The multiply-add kernels take 16 packed bytes apart, 4 of each of 4 rows, and
// multiply the trits of one position by the matching 4 activations of a token:
//
//	V0-V15 sums   V16-V20 activations   V21-V26 tables of trits   V27, V28 divisor or mask
//
// SPLIT leaves the low three trits of the I1 bytes V29 there and the high two in
// V30: x mod 27 and x / 27, both by a product with a reciprocal of 512, which is
// exact for x <= 242, what I1 holds. NIBBLES leaves the low two of I2 in V29 and
// the high two in V30.

#define I1TABLES \
	MOVD $·tritTables(SB), R8 \
	VLD1.P 64(R8), [V21.B16, V22.B16, V23.B16, V24.B16] \
	VLD1 (R8), [V25.B16, V26.B16] \
	VMOVI $19, V27.B16 \
	VMOVI $27, V28.B16

#define I2TABLES \
	MOVD $·bitPairTables(SB), R8 \
	VLD1 (R8), [V21.B16, V22.B16] \
	VMOVI $15, V27.B16

#define SPLIT \
	UMULL(30, 29, 27) \
	UMULL2(31, 29, 27) \
	UZP2(30, 30, 31) \
	USHR(30, 30, 1) \
	MLS(29, 30, 28)

#define NIBBLES \
	USHR(30, 29, 4) \
	VAND V27.B16, V29.B16, V29.B16

// Trit j of the 16 bytes, to V31.
#define I1J0 TBL2(31, 21, 29)
#define I1J1 TBL2(31, 23, 29)
#define I1J2 TBL2(31, 25, 29)
#define I1J3 TBL(31, 21, 30)
#define I1J4 TBL(31, 23, 30)
#define I2J0 TBL(31, 21, 29)
#define I2J1 TBL(31, 22, 29)
#define I2J2 TBL(31, 21, 30)
#define I2J3 TBL(31, 22, 30)

// One vector of 4 rows times 1, 2 or 4 tokens, into sums d and following.
#define I1X1(d) \
	VLD1.P 16(R1), [V29.B16] \
	SPLIT \
	I1J0; SDOT(d, 31, 16, 0) \
	I1J1; SDOT(d, 31, 16, 1) \
	I1J2; SDOT(d, 31, 16, 2) \
	I1J3; SDOT(d, 31, 16, 3) \
	I1J4; SDOT(d, 31, 17, 0)

#define I2X1(d) \
	VLD1.P 16(R1), [V29.B16] \
	NIBBLES \
	I2J0; SDOT(d, 31, 16, 0) \
	I2J1; SDOT(d, 31, 16, 1) \
	I2J2; SDOT(d, 31, 16, 2) \
	I2J3; SDOT(d, 31, 16, 3)

#define PAIR(d, a, lane) SDOT(d, 31, a, lane); SDOT((d)+1, 31, a, (lane)+1)

#define I1X2(d) \
	VLD1.P 16(R1), [V29.B16] \
	SPLIT \
	I1J0; PAIR(d, 16, 0) \
	I1J1; PAIR(d, 16, 2) \
	I1J2; PAIR(d, 17, 0) \
	I1J3; PAIR(d, 17, 2) \
	I1J4; PAIR(d, 18, 0)

#define I2X2(d) \
	VLD1.P 16(R1), [V29.B16] \
	NIBBLES \
	I2J0; PAIR(d, 16, 0) \
	I2J1; PAIR(d, 16, 2) \
	I2J2; PAIR(d, 17, 0) \
	I2J3; PAIR(d, 17, 2)

#define FOUR(d, a) PAIR(d, a, 0); PAIR((d)+2, a, 2)

#define I1X4(d) \
	VLD1.P 16(R1), [V29.B16] \
	SPLIT \
	I1J0; FOUR(d, 16) \
	I1J1; FOUR(d, 17) \
	I1J2; FOUR(d, 18) \
	I1J3; FOUR(d, 19) \
	I1J4; FOUR(d, 20)

#define I2X4(d) \
	VLD1.P 16(R1), [V29.B16] \
	NIBBLES \
	I2J0; FOUR(d, 16) \
	I2J1; FOUR(d, 17) \
	I2J2; FOUR(d, 18) \
	I2J3; FOUR(d, 19)

#define ZERO \
	VEOR V0.B16, V0.B16, V0.B16 \
	VEOR V1.B16, V1.B16, V1.B16 \
	VEOR V2.B16, V2.B16, V2.B16 \
	VEOR V3.B16, V3.B16, V3.B16 \
	VEOR V4.B16, V4.B16, V4.B16 \
	VEOR V5.B16, V5.B16, V5.B16 \
	VEOR V6.B16, V6.B16, V6.B16 \
	VEOR V7.B16, V7.B16, V7.B16 \
	VEOR V8.B16, V8.B16, V8.B16 \
	VEOR V9.B16, V9.B16, V9.B16 \
	VEOR V10.B16, V10.B16, V10.B16 \
	VEOR V11.B16, V11.B16, V11.B16 \
	VEOR V12.B16, V12.B16, V12.B16 \
	VEOR V13.B16, V13.B16, V13.B16 \
	VEOR V14.B16, V14.B16, V14.B16 \
	VEOR V15.B16, V15.B16, V15.B16
