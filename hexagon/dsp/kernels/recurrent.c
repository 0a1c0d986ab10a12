// What recurrent layers do to rows of float32.
#include "kernels.h"
#include "sf.h"
#include "sigmoid.h"

static V *at(const struct rows *r, int row) { return (V *)((uint8_t *)r->at + (uintptr_t)row * r->stride); }

void mul_rows(const struct rows *dst, const struct rows *a, const struct rows *b, int n, int width) {
  for (int i = 0; i < n; i++) {
    V *y = at(dst, i);
    const V *p = at(a, i), *q = at(b, i);
    for (int k = 0; k < width / 32; k++) y[k] = sf_mul(p[k], q[k]);
  }
}

void conv(const struct rows *dst, const struct rows *src, const float *weights, float *state, uint32_t pitch, int n, int width, int taps, int silu) {
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
      at(dst, i)[k] = silu ? sf_mul(sum, sigmoid(sum)) : sum;
    }
    // Rows of the state are read before they are written: what is read lies behind.
    for (int i = 0; i < behind; i++) {
      const int row = n - behind + i;
      at(&tail, i)[k] = row < 0 ? at(&tail, behind + row)[k] : at(src, row)[k];
    }
  }
}

void gates(const struct rows *dst, const struct rows *src, const float *weights, uint32_t pitch, int n, int width) {
  const struct rows of = {(void *)weights, pitch};
  const V *s = at(&of, 0), *d = at(&of, 1), *a = at(&of, 2);
  for (int i = 0; i < n; i++) {
    const V *x = at(src, i);
    V *y = at(dst, i);
    for (int k = 0; k < width / 32; k++) y[k] = exp_minus(sf_mul(a[k], softplus(sf_add(sf_mul(s[k], x[k]), d[k]))));
  }
}

// delta_panel takes 32 columns of a head, which are one panel of a state, through all rows.
static void delta_panel(const struct delta *d, int panel, int head, int key) {
  const int width = d->width;
  const V *before = d->from ? (const V *)d->from + panel * width : 0;
  V *state = (V *)d->to + panel * width;
  for (int i = 0; i < d->n; i++, before = state) {
    const float *q = (const float *)at(&d->x, i) + key * width, *k = q + d->keys * width, *of = (const float *)at(&d->gates, i);
    const V v = ((const V *)at(&d->x, i))[d->keys * width / 16 + panel], decay = splat_f(of[d->decay + head]);
    V told = zero(), sum = zero();
    for (int j = 0; before && j < width; j++) told = sf_add(told, sf_mul(splat_f(k[j]), before[j]));
    const V correct = sf_mul(sf_sub(v, sf_mul(told, decay)), splat_f(of[d->beta + head]));
    for (int j = 0; j < width; j++) {
      const V s = sf_add(sf_mul(before ? before[j] : zero(), decay), sf_mul(splat_f(k[j]), correct));
      state[j] = s;
      sum = sf_add(sum, sf_mul(splat_f(q[j]), s));
    }
    at(&d->dst, i)[panel] = sum;
  }
}

void delta_rule(const struct delta *d, int first, int end) {
  const int heads = d->keys * d->share;
  for (int head = 0, key = 0, of = 0, panel = 0; head < heads; head++) {
    for (int k = 0; k < d->width / 32; k++, panel++)
      if (panel >= first && panel < end) delta_panel(d, panel, head, key);
    if (!d->grouped) key = key + 1 < d->keys ? key + 1 : 0;
    else if (++of == d->share) of = 0, key++;
  }
}
