// Instructions of AMX, which Go's assembler lacks. Arguments are numbers: of tiles 0 to 7, of general registers 0 to 15
// as x86 numbers them. A tile in memory is at base + row·stride + disp, of rows as long as the configuration says.
//
//	VEX.128.0F38.W0 (Intel SDM vol. 2, §2.3 and the instructions):
//	C4   R̄ X̄ B̄ 00010   bits 3 of reg, index and base, inverted; opcodes of map 0F38
//	     0 v̄v̄v̄v̄ 0 pp    a third tile, inverted; the prefix: none, 66, F3, F2
//	op   mod reg r/m
//	     scale index base, and a displacement of four bytes

#define AMX_MEM(reg, op, prefix, base, index, disp) \
	BYTE $0xc4; \
	BYTE $(0xe2 ^ (((index) >> 3) << 6) ^ (((base) >> 3) << 5)); \
	BYTE $(0x78 | (prefix)); \
	BYTE $(op); \
	BYTE $(0x84 | ((reg) << 3)); \
	BYTE $((((index) & 7) << 3) | ((base) & 7)); \
	LONG $(disp)

#define AMX_TILES(op, prefix, third, reg, rm) \
	BYTE $0xc4; \
	BYTE $0xe2; \
	BYTE $(((15 - (third)) << 3) | (prefix)); \
	BYTE $(op); \
	BYTE $(0xc0 | ((reg) << 3) | (rm))

// LDTILECFG reads 64 bytes: what an index of 4 stands for is that there is none.
#define LDTILECFG(base, disp) AMX_MEM(0, 0x49, 0, base, 4, disp)
#define TILERELEASE() AMX_TILES(0x49, 0, 0, 0, 0)
#define TILEZERO(tile) AMX_TILES(0x49, 3, 0, tile, 0)
#define TILELOADD(tile, base, stride, disp) AMX_MEM(tile, 0x4b, 3, base, stride, disp)
#define TILELOADDT1(tile, base, stride, disp) AMX_MEM(tile, 0x4b, 1, base, stride, disp)
#define TILESTORED(tile, base, stride, disp) AMX_MEM(tile, 0x4b, 2, base, stride, disp)

// Products add to sums int32[rows][columns] those of bytes a[rows][k] and b[k/4][columns][4], each signed or not.
#define TDPBSSD(b, a, sums) AMX_TILES(0x5e, 3, b, sums, a)
#define TDPBSUD(b, a, sums) AMX_TILES(0x5e, 2, b, sums, a)
#define TDPBUSD(b, a, sums) AMX_TILES(0x5e, 1, b, sums, a)
#define TDPBUUD(b, a, sums) AMX_TILES(0x5e, 0, b, sums, a)
