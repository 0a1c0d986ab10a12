// What recurrent layers do to rows of float32.
#include "kernels.h"
#include "sf.h"

static V *at(const struct rows *r, int row) { return (V *)((uint8_t *)r->at + (uintptr_t)row * r->stride); }

void mul_rows(const struct rows *dst, const struct rows *a, const struct rows *b, int n, int width) {
  for (int i = 0; i < n; i++) {
    V *y = at(dst, i);
    const V *p = at(a, i), *q = at(b, i);
    for (int k = 0; k < width / 32; k++) y[k] = sf_mul(p[k], q[k]);
  }
}

void conv(const struct rows *dst, const struct rows *src, const float *weights, float *state, uint32_t pitch, int n, int width, int taps) {
  const struct rows taps_of = {(void *)weights, pitch}, tail = {state, pitch};
  const int behind = taps - 1;
  for (int k = 0; k < width / 32; k++) {
    for (int i = 0; i < n; i++) {
      V sum = zero();
      for (int tap = 0; tap < taps; tap++) {
        const int row = i - behind + tap;
        const V x = row < 0 ? at(&tail, behind + row)[k] : at(src, row)[k], p = sf_mul(at(&taps_of, tap)[k], x);
        sum = tap ? sf_add(sum, p) : p;
      }
      at(dst, i)[k] = sum;
    }
    // Rows of the state are read before they are written: what is read lies behind.
    for (int i = 0; i < behind; i++) {
      const int row = n - behind + i;
      at(&tail, i)[k] = row < 0 ? at(&tail, behind + row)[k] : at(src, row)[k];
    }
  }
}
