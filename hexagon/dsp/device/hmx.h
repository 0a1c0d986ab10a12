// The tile unit's instructions (HMX). LUTRA_HMX: those of a chip. Else tile.c computes what they are said to do; in the emulator's
// build it also ends the program where a chip reads what is not TCM.
#pragma once
#include <stdint.h>

enum { HMX_WINDOW = 1 << 18 }; // TCM's pages are at least as large: what one instruction reads lies in one of them

#ifdef LUTRA_HMX
#define HMX static inline __attribute__((always_inline))
// HMX_IN is an instruction, or a packet, of operands a to d. Other compilers know no instruction of the unit: they get the
// words of public QEMU's target/hexagon/imported/hmx/encode_ext.def, for registers r0 to r3.
#ifdef __HMX__
#define HMX_IN(instruction, words, a, b, c, d) __asm__ volatile(instruction ::"r"(a), "r"(b), "r"(c), "r"(d) : "memory")
#else
#define HMX_IN(instruction, words, a, b, c, d)                                                                                                     \
  do {                                                                                                                                             \
    register uint32_t r0 __asm__("r0") = (uint32_t)(a), r1 __asm__("r1") = (uint32_t)(b), r2 __asm__("r2") = (uint32_t)(c), r3 __asm__("r3") = (uint32_t)(d); \
    __asm__ volatile(".word " words ::"r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");                                                              \
  } while (0)
#endif
HMX void hmx_columns(const uint32_t *words) { HMX_IN("bias = mxmem2(%0)", "0x9200c3fe", (uintptr_t)words, 0, 0, 0); }
HMX void hmx_clear(void) { HMX_IN("mxclracc.hf", "0xa6e0c013", 0, 0, 0, 0); }
HMX void hmx_multiply(const uint16_t *act, const uint16_t *wgt, uint32_t tiles) {
  HMX_IN("{ activation.hf = mxmem(%0, %1):deep\n  weight.hf = mxmem(%2, %3) }", "0x920041e2, 0x9202e3ef", (uintptr_t)act, tiles * 2048 - 1, (uintptr_t)wgt, tiles * 2048 - 1);
}
HMX void hmx_store(uint16_t *out) {
  HMX_IN("{ cvt.hf = acc(%0) }\n{ mxmem(%1, %2) = cvt }", "0xa6e0da10, 0xa6e1c218", 2, (uintptr_t)out, 0, 0);
}
HMX void hmx_clear_sums(void) { HMX_IN("mxclracc", "0xa6e0c011", 0, 0, 0, 0); }
HMX void hmx_multiply_bytes(const uint8_t *act, const uint8_t *wgt, uint32_t tiles) {
  HMX_IN("{ activation.ub = mxmem(%0, %1):deep:cm\n  weight.b = mxmem(%2, %3) }", "0x920041e1, 0x9202e3e0", (uintptr_t)act, tiles * 2048 - 1, (uintptr_t)wgt, tiles * 1024 - 1);
}
HMX void hmx_store_plane(uint8_t *out, const uint32_t *words) {
  HMX_IN("bias = mxmem(%0)", "0x9200c3ff", (uintptr_t)words, 0, 0, 0);
  HMX_IN("mxmem(%0, %1):after:retain:cm.ub = acc", "0xa6e0c10f", (uintptr_t)out, 0, 0, 0);
}
#else
void hmx_columns(const uint32_t *words);                                        // 32 columns' scales (fp16) and no bias, 256 bytes
void hmx_clear(void);                                                           // the accumulator
void hmx_multiply(const uint16_t *act, const uint16_t *wgt, uint32_t tiles);    // adds products of up to 32 pairs of tiles
void hmx_store(uint16_t *out);                                                  // a tile, scaled
void hmx_clear_sums(void);                                                      // the accumulator of integers
void hmx_multiply_bytes(const uint8_t *act, const uint8_t *wgt, uint32_t tiles); // adds products of up to 32 pairs of tiles of bytes
void hmx_store_plane(uint8_t *out, const uint32_t *words);                      // a byte of each sum; words are 32 columns' scales, 128 bytes
#endif
