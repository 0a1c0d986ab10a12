// The table of exponentials, made once: 2^-x of every fp16 x.
#include "kernels.h"

static uint16_t hf_of_double(double d) { // d in [0, 1]
  uint64_t u;
  __builtin_memcpy(&u, &d, 8);
  int e = (int)(u >> 52) - 1008; // as fp16 has it
  uint64_t m = (u & 0xfffffffffffffull) | 1ull << 52;
  int sh = e >= 1 ? 42 : 43 - e;
  if (!u || sh > 54) return 0;
  uint64_t q = m >> sh, rest = m & ((1ull << sh) - 1), half = 1ull << (sh - 1);
  q += rest > half || (rest == half && (q & 1));
  return (uint16_t)((uint32_t)(e >= 1 ? e - 1 : 0) << 10) + (uint16_t)q;
}

void exp_table(uint16_t *table, int first, int end) {
  for (int bits = first; bits < end; bits++) {
    int e = bits >> 10, m = bits & 0x3ff;
    // -x = -k + f with 0 <= f < 1, in units of 2^-24.
    int64_t x = e ? (int64_t)(m | 0x400) << (e - 1) : m;
    int64_t k = (x + 0xffffff) >> 24;
    if (e == 31 || k > 30) {
      table[bits] = 0;
      continue;
    }
    double f = (double)(int32_t)((k << 24) - x) * 0x1p-24;
    // 2^f by Taylor's series: the error is below 2^-52.
    static const double inverse[18] = {0,       1,        1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,
                                       1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16, 1.0 / 17};
    double t = f * 0.69314718055994530942, r = 1;
    for (int i = 17; i > 0; i--) r = 1 + r * t * inverse[i];
    uint64_t u = (uint64_t)(1023 - k) << 52;
    double scale;
    __builtin_memcpy(&scale, &u, 8);
    table[bits] = hf_of_double(r * scale);
  }
}
