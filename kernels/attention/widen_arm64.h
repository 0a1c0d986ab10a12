// HALVES and CODES load eight elements at R3, float16 or int8, to V0 and V1 as float32.

#define HALVES \
	VLD1.P 16(R3), [V2.H8] \
	FCVTL(0, 2) \
	FCVTL2(1, 2)

#define CODES \
	FMOVD.P 8(R3), F2 \
	SXTL_H8(2, 2) \
	SXTL_S4(0, 2) \
	SXTL2_S4(1, 2) \
	SCVTF(0, 0) \
	SCVTF(1, 1)
