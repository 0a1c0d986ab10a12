// The words of HVX that the kernels are written in: integers, permutations, lookups
// and gathers only. qemu-hexagon has no HVX float (and executes some conversions as
// other instructions, silently), so fp16 arithmetic goes through hf.h.
#pragma once
#include <hexagon_types.h>
#include <hexagon_protos.h>
#include <hvx_hexagon_protos.h>
#include <stdint.h>

typedef HVX_Vector V;
typedef HVX_VectorPair W;
typedef HVX_VectorPred Q;

#define ALIGNED __attribute__((aligned(128)))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("unroll")
#define LO(w) Q6_V_lo_W(w)
#define HI(w) Q6_V_hi_W(w)

// Sizes of hexagon/layout.
enum { STRIP = 128, BLOCK = 64, TABLE_COLS = 256, TABLE_BYTES = 2048, TILE = 1024, LINE = 128 };

INLINE V splat_w(uint32_t x) { return Q6_V_vsplat_R((int)x); }
INLINE V splat_h(uint32_t x) { return splat_w(x | x << 16); }
INLINE V splat_b(uint32_t x) { return splat_w(x * 0x01010101u); }
INLINE V zero(void) { return Q6_V_vzero(); }
INLINE V loadu(const void *p) { return *(const HVX_UVector *)p; }
INLINE V high_nibbles(V b) { return Q6_Vub_vlsr_VubR(b, 4); }

// exchange swaps bit log2(off) of the place of a byte with the choice of vector; given
// one vector twice it copies, and the bit becomes free.
INLINE W exchange(V a, V b, int off) { return Q6_W_vshuff_VVR(b, a, off); }

// lookup of 128 bytes' low nibbles among 16 halfwords. A vector holds four tables:
// word 16*(sel&1)+n, half sel>>1. Even bytes yield the low vector, odd ones the high.
#define LOOKUP(bytes, table, sel) Q6_Wh_vlut16_VbVhR_nomatch(bytes, table, sel)
