// The tile unit (HMX) of a chip. UNTESTED: only the Hexagon SDK's compiler knows its
// instructions (-mhmx), and no emulator runs them. Accumulators are the chip's, wider
// than fp16; results may differ in the last place from the float32 that the protocol
// defines. Call between HAP_compute_res_hmx_lock and _unlock; operands lie in VTCM.
#include "tile.h"

static uint16_t half_of_scale(uint32_t bits) { // of powers of two and what fp16 holds exactly
  const int e = (int)(bits >> 23 & 255) - 112;
  return (uint16_t)((bits >> 16 & 0x8000) | (e <= 0 ? 0 : e > 30 ? 0x7bff : (uint32_t)e << 10 | (bits >> 13 & 0x3ff)));
}

static void multiply(const uint16_t *act, const uint16_t *wgt, int k) {
  for (; k > 0; k -= 32, act += 32 * 1024, wgt += 32 * 1024) { // up to 32 tile pairs an instruction
    const uint32_t range = (uint32_t)(k < 32 ? k : 32) * 2048 - 1;
    __asm__ volatile("{ activation.hf = mxmem(%0, %2):deep\n  weight.hf = mxmem(%1, %2) }" ::"r"(act), "r"(wgt), "r"(range) : "memory");
  }
}

void tile_mul_hmx(const struct tile_mul *t) {
  // 32 words with the columns' fp16 scale in the low half, then 128 bytes of bias: none.
  static uint32_t bias[64] __attribute__((aligned(256)));
  for (int i = 0; i < 32; i++) bias[i] = half_of_scale(t->scale);
  __asm__ volatile("bias = mxmem2(%0)" ::"r"(bias) : "memory");
  for (int row = 0; row < t->rows; row++)
    for (int col = 0; col < t->cols; col++) {
      __asm__ volatile("mxclracc.hf" ::: "memory");
      multiply(t->act0 + row * t->k0 * 1024, t->wgt0 + col * t->k0 * 1024, t->k0);
      if (t->k1) multiply(t->act1 + row * t->k1 * 1024, t->wgt1 + col * t->k1 * 1024, t->k1);
      uint16_t *out = t->out + (row * t->cols + col) * 1024;
      __asm__ volatile("{ cvt.hf = acc(%1) }\n{ mxmem(%0, %2) = cvt }" ::"r"(out), "r"(2), "r"(0) : "memory");
    }
}
