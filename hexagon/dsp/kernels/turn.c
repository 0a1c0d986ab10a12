// Rows of float32 to the columns of the tile unit's fp16 tiles, and its results back to rows:
// 32 rows by 64 columns at once, which are two tiles.
#include "kernels.h"
#include "sf.h"

static V *at(const struct rows *r, int row) { return (V *)((uint8_t *)r->at + (uintptr_t)row * r->stride); }

// turn makes word j of vector i word i of vector j: each step swaps a bit of one with one of the other.
static void turn(V v[32]) {
  for (int bit = 1; bit < 32; bit *= 2)
    for (int i = 0; i < 32; i++) {
      if (i & bit) continue;
      const W w = exchange(v[i], v[i | bit], 4 * bit);
      v[i] = LO(w), v[i | bit] = HI(w);
    }
}

// Exponents of float32: of the scale that brings a row to 1 at most, neither it nor its reciprocal subnormal.
enum { LEAST_EXPONENT = 1, MOST_EXPONENT = 253 };

void rows_to_tiles(uint16_t *dst, float *scales, const struct rows *src, int n, int K, int width) {
  ALIGNED V v[32];
  float inverse[32];
  const int vectors = width / 32;
  for (int first = 0; first < n; first += 32, dst += 32 * K) {
    for (int i = 0; i < 32 && first + i < n; i++) {
      const V *x = at(src, first + i);
      V largest = zero();
      for (int k = 0; k < vectors; k++) largest = Q6_Vw_vmax_VwVw(largest, sf_abs(x[k]));
      UNROLL for (int s = 64; s >= 4; s /= 2) largest = Q6_Vw_vmax_VwVw(largest, Q6_V_vror_VR(largest, s));
      uint32_t e = ((uint32_t)Q6_R_vextract_VR(largest, 0) >> 23) + 1;
      e = e < LEAST_EXPONENT ? LEAST_EXPONENT : e > MOST_EXPONENT ? MOST_EXPONENT : e;
      scales[first + i] = float_of(e << 23);
      inverse[i] = float_of((254 - e) << 23);
    }
    V *to = (V *)dst;
    for (int k = 0; k < K / 64; k++, to += 32) {
      for (int i = 0; i < 32; i++) {
        V h[2] = {zero(), zero()};
        if (first + i < n)
          for (int j = 0; j < 2; j++)
            if (2 * k + j < vectors) h[j] = hf_of_sf(sf_mul(at(src, first + i)[2 * k + j], splat_f(inverse[i])));
        v[i] = Q6_Vh_vpacke_VwVw(h[1], h[0]);
      }
      turn(v);
      for (int i = 0; i < 32; i++) to[i] = v[i];
    }
  }
}

void tiles_to_rows(const struct rows *dst, const uint16_t *tiles, const float *scales, const float *r, const float *bias, int n, int width, int columns, float factor, int more) {
  ALIGNED V v[32];
  for (int first = 0; first < n; first += 32, tiles += TILE)
    for (int k = 0; k < width / 64; k++) {
      for (int i = 0; i < 32; i++) v[i] = ((const V *)(tiles + (2 * k + i / 16) * columns * TILE))[i % 16];
      turn(v);
      for (int i = 0; i < 32 && first + i < n; i++) {
        V *y = at(dst, first + i) + 2 * k;
        const V scale = splat_f(scales[first + i] * factor);
        const W h = Q6_Wuw_vunpack_Vuh(v[i]);
        for (int j = 0; j < 2; j++) {
          V f = sf_mul(sf_mul(sf_of_hf(j ? HI(h) : LO(h)), ((const V *)r)[2 * k + j]), scale);
          if (bias) f = sf_add(f, ((const V *)bias)[2 * k + j]);
          y[j] = more ? sf_add(y[j], f) : f;
        }
      }
    }
}
