// The tile unit's products in plain C, for builds without an assembler that knows it.
#include "tile.h"

static float of_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
  if (!e) {
    const float f = (float)(int)m * 0x1p-24f;
    return sign ? -f : f;
  }
  const uint32_t u = sign | (e + 112) << 23 | m << 13;
  float f;
  __builtin_memcpy(&f, &u, sizeof f);
  return f;
}

static uint16_t to_half(float f) {
  uint32_t u;
  __builtin_memcpy(&u, &f, sizeof u);
  const uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0;
  if (a >= 0x477fe000) return (uint16_t)(sign | 0x7bff);
  if (a < 0x33000001) return (uint16_t)sign;
  const int e = (int)(a >> 23) - 112;
  const uint32_t m = (a & 0x7fffff) | 0x800000, sh = e >= 1 ? 13u : (uint32_t)(14 - e);
  uint32_t q = m >> sh;
  const uint32_t rest = m & ((1u << sh) - 1), half = 1u << (sh - 1);
  q += rest > half || (rest == half && (q & 1));
  return (uint16_t)(sign | (((uint32_t)(e >= 1 ? e - 1 : 0) << 10) + q));
}

static int at(int r, int c) { return (r >> 1) * 64 + 2 * c + (r & 1); }

void tile_mul_plain(const struct tile_mul *t) {
  float scale;
  __builtin_memcpy(&scale, &t->scale, sizeof scale);
  for (int row = 0; row < t->rows; row++)
    for (int col = 0; col < t->cols; col++)
      for (int r = 0; r < 32; r++)
        for (int c = 0; c < 32; c++) {
          float acc = 0;
          for (int k = 0; k < (t->k0 + t->k1) * 32; k++) {
            const int second = k >= t->k0 * 32, j = second ? k - t->k0 * 32 : k, n = second ? t->k1 : t->k0;
            const uint16_t *a = (second ? t->act1 : t->act0) + (row * n + j / 32) * 1024;
            const uint16_t *w = (second ? t->wgt1 : t->wgt0) + (col * n + j / 32) * 1024;
            acc += of_half(a[at(r, j % 32)]) * of_half(w[at(j % 32, c)]);
          }
          t->out[(row * t->cols + col) * 1024 + at(r, c)] = to_half(acc * scale);
        }
}
