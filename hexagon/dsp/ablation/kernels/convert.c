// ConvertDQ: bits put together by shifts and masks, floats by float instructions.
#include "ablation.h"

// Stand-ins of the float instructions on 32 words: conversion, subtraction and
// multiplication (results stay in qf32), and rounding two vectors to fp16.
INLINE V cvt(V w) { return Q6_Vw_vabs_Vw(w); }
INLINE V sub(V a, V b) { return Q6_Vw_vsub_VwVw(a, b); }
INLINE V mul(V a, V b) { return Q6_Vw_vmpyie_VwVuh(a, b); }
INLINE V narrow(V hi, V lo) { return Q6_Vh_vpacke_VwVw(hi, lo); }

// codes of column c (0..31) of a half: a byte for each byte of a line.
INLINE V column(const V *w, int bits, int half, int quad, int bit) {
  V r = zero();
  for (int i = 0; i < bits; i++) {
    V line = w[(i * 2 + half) * 4 + quad / 2];
    int at = (quad & 1) * 4 + bit;
    V b = Q6_V_vand_VV(Q6_Vub_vlsr_VubR(line, at), splat_b(1));
    r = Q6_V_vor_VV(r, Q6_Vw_vasl_VwR(b, bits - 1 - i));
  }
  return r;
}

INLINE __attribute__((always_inline)) void half_block(uint16_t *tiles, uint32_t stride, const V *w, int half, int bits, const V *scales, const V *zeros, int floats) {
  V p[32]; // by column
  UNROLL for (int quad = 0; quad < 8; quad++)
    UNROLL for (int bit = 0; bit < 4; bit++) p[2 * quad + (bit >> 1) + 16 * (bit & 1)] = column(w, bits, half, quad, bit);
  // Byte 4j+s of a line is row 4j+2(s&1)+(s>>1). Make bytes 2i and 2i+1 rows of a pair,
  // then move the column into bits 1..5 of the byte's place; the vector is then a row
  // pair of 64.
  UNROLL for (int c = 0; c < 32; c++) {
    V odd = Q6_Vw_vasl_VwR(Q6_V_vand_VV(p[c], splat_w(0xff00)), 8), even = Q6_Vuw_vlsr_VuwR(Q6_V_vand_VV(p[c], splat_w(0xff0000)), 8);
    p[c] = Q6_V_vor_VV(Q6_V_vand_VV(p[c], splat_w(0xff0000ff)), Q6_V_vor_VV(odd, even));
  }
  UNROLL for (int s = 0; s < 5; s++)
    UNROLL for (int i = 0; i < 32; i++)
      if (!(i >> s & 1)) {
        W x = exchange(p[i], p[i | 1 << s], 2 << s);
        p[i] = LO(x), p[i | 1 << s] = HI(x);
      }
  // p[i]: row pairs i and 32+i, each 32 columns of two bytes.
  for (int i = 0; i < 32; i++) {
    W h = Q6_Wuh_vunpack_Vub(p[i]);
    UNROLL for (int b = 0; b < 2; b++) {
      const int pair = i + 32 * b;
      V codes = b ? HI(h) : LO(h);
      V *out = (V *)(tiles + (uint32_t)(pair >> 4) * stride) + (pair & 15);
      if (!floats) {
        *out = codes;
        continue;
      }
      W n = Q6_Wuw_vunpack_Vuh(codes);
      V lo = mul(sub(cvt(LO(n)), zeros[pair]), scales[pair]), hi = mul(sub(cvt(HI(n)), zeros[pair]), scales[pair]);
      *out = narrow(hi, lo);
    }
  }
}

void convert_dq(uint16_t *tiles, const uint8_t *weights, const V *scales, const V *zeros, int blocks, int bits, int floats) {
  const uint32_t stride = (uint32_t)blocks * 2 * TILE;
  const V *w = (const V *)weights;
  for (int i = 0; i < 2 * blocks; i++, w += i & 1 ? 0 : bits * 8) {
    uint16_t *t = tiles + (uint32_t)i * TILE;
    if (bits == 4 && floats) half_block(t, stride, w, i & 1, 4, scales, zeros, 1);
    else if (bits == 4) half_block(t, stride, w, i & 1, 4, scales, zeros, 0);
    else if (floats) half_block(t, stride, w, i & 1, 2, scales, zeros, 1);
    else half_block(t, stride, w, i & 1, 2, scales, zeros, 0);
  }
}
