// The tile unit's instructions (HMX). LUTRA_HMX: those of a chip, which the Hexagon SDK's
// compiler alone knows. Else tile.c computes what they are said to do; in the emulator's
// build it also ends the program where a chip reads what is not TCM.
#pragma once
#include <stdint.h>

enum { HMX_WINDOW = 1 << 18 }; // TCM's pages are at least as large: what one instruction reads lies in one of them

#ifdef LUTRA_HMX
#define HMX static inline __attribute__((always_inline))
HMX void hmx_columns(const uint32_t *words) { __asm__ volatile("bias = mxmem2(%0)" ::"r"(words) : "memory"); }
HMX void hmx_clear(void) { __asm__ volatile("mxclracc.hf" ::: "memory"); }
HMX void hmx_multiply(const uint16_t *act, const uint16_t *wgt, uint32_t tiles) {
  __asm__ volatile("{ activation.hf = mxmem(%0, %2):deep\n  weight.hf = mxmem(%1, %2) }" ::"r"(act), "r"(wgt), "r"(tiles * 2048 - 1) : "memory");
}
HMX void hmx_store(uint16_t *out) {
  __asm__ volatile("{ cvt.hf = acc(%1) }\n{ mxmem(%0, %2) = cvt }" ::"r"(out), "r"(2), "r"(0) : "memory");
}
HMX void hmx_clear_sums(void) { __asm__ volatile("mxclracc" ::: "memory"); }
HMX void hmx_multiply_bytes(const uint8_t *act, const uint8_t *wgt, uint32_t tiles) {
  __asm__ volatile("{ activation.ub = mxmem(%0, %2):deep:cm\n  weight.b = mxmem(%1, %3) }" ::"r"(act), "r"(wgt), "r"(tiles * 2048 - 1), "r"(tiles * 1024 - 1) : "memory");
}
HMX void hmx_store_plane(uint8_t *out, const uint32_t *words) {
  __asm__ volatile("bias = mxmem(%0)" ::"r"(words) : "memory");
  __asm__ volatile("mxmem(%0, %1):after:retain:cm.ub = acc" ::"r"(out), "r"(0) : "memory");
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
