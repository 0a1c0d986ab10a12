// Instructions that Go's assembler knows in their EVEX (AVX-512) form alone.

// VPDPBUSD_VEX adds to the eight int32 of Yacc the products of the bytes of Ydigits, unsigned, and those of Ycodes,
// signed, four by four: VPDPBUSD Ycodes, Ydigits, Yacc (AVX-VNNI). Arguments are register numbers, 0 to 15.
//
//	VEX.256.66.0F38.W0 50 /r, registers only (Intel SDM vol. 2, VPDPBUSD and §2.3):
//	C4   R̄ X̄ B̄ 00010   bits 3 of acc and of codes, inverted; X̄ is of an index and set; opcodes of map 0F38
//	     0 v̄v̄v̄v̄ 1 01    digits, inverted; 256 bits; the prefix 66
//	50   11 acc codes    their bits 0 to 2
#define VPDPBUSD_VEX(codes, digits, acc) \
	BYTE $0xc4; \
	BYTE $(0xe2 ^ (((acc) >> 3) << 7) ^ (((codes) >> 3) << 5)); \
	BYTE $(0x05 | ((15 - (digits)) << 3)); \
	BYTE $0x50; \
	BYTE $(0xc0 | (((acc) & 7) << 3) | ((codes) & 7))
