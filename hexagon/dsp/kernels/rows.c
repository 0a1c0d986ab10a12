// What a layer does to rows of float32 between its products and attention.
#include "kernels.h"
#include "sf.h"
#include "sigmoid.h"

static V *at(const struct rows *r, int row) { return (V *)((uint8_t *)r->at + (uintptr_t)row * r->stride); }

void rms_norm(const struct rows *dst, const struct rows *src, const float *weight, int n, int parts, int width, float inverse, float eps) {
  const int vectors = width / 32;
  const V *w = (const V *)weight;
  for (int i = 0; i < n; i++) {
    const V *x = at(src, i);
    V *y = at(dst, i);
    for (int part = 0; part < parts; part++, x += vectors, y += vectors) {
      V sum = zero();
      for (int k = 0; k < vectors; k++) sum = sf_add(sum, sf_mul(x[k], x[k]));
      const V scale = splat_f(reciprocal_root(first_f(sf_sum(sum)) * inverse + eps));
      for (int k = 0; k < vectors; k++) {
        V v = sf_mul(x[k], scale);
        y[k] = w ? sf_mul(v, w[k]) : v;
      }
    }
  }
}

void layer_norm(const struct rows *dst, const struct rows *src, const float *weight, const float *bias, int n, int width, float inverse, float eps) {
  const int vectors = width / 32;
  const V *w = (const V *)weight, *b = (const V *)bias;
  for (int i = 0; i < n; i++) {
    const V *x = at(src, i);
    V *y = at(dst, i), sum = zero(), squares = zero();
    for (int k = 0; k < vectors; k++) sum = sf_add(sum, x[k]);
    const V mean = splat_f(first_f(sf_sum(sum)) * inverse);
    for (int k = 0; k < vectors; k++) {
      const V v = y[k] = sf_sub(x[k], mean);
      squares = sf_add(squares, sf_mul(v, v));
    }
    const V scale = splat_f(reciprocal_root(first_f(sf_sum(squares)) * inverse + eps));
    for (int k = 0; k < vectors; k++) y[k] = sf_add(sf_mul(sf_mul(y[k], scale), w[k]), b[k]);
  }
}

void quantize(int16_t *dst, float *scales, const struct rows *src, int n, int K, int width) {
  const int vectors = width / 32;
  const V most = splat_w(MOST_ACTIVATION), least = splat_w((uint32_t)-MOST_ACTIVATION);
  for (int i = 0; i < n; i++) {
    const V *x = at(src, i);
    V *q = (V *)(dst + i * K), largest = zero();
    for (int k = 0; k < vectors; k++) largest = Q6_Vw_vmax_VwVw(largest, sf_abs(x[k]));
    UNROLL for (int s = 64; s >= 4; s /= 2) largest = Q6_Vw_vmax_VwVw(largest, Q6_V_vror_VR(largest, s));
    const float m = first_f(largest);
    float scale = 0, inverse = 0;
    if (bits_of(m) >= bits_of(0x1p-64f)) scale = m * (1.0f / MOST_ACTIVATION), inverse = reciprocal(scale);
    scales[i] = scale;
    const V by = splat_f(inverse);
    for (int k = 0; k < K / 64; k++) {
      V v[2] = {zero(), zero()};
      UNROLL for (int j = 0; j < 2; j++)
        if (2 * k + j < vectors) v[j] = Q6_Vw_vmax_VwVw(least, Q6_Vw_vmin_VwVw(most, round_to_int(sf_mul(x[2 * k + j], by))));
      q[k] = Q6_Vh_vpacke_VwVw(v[1], v[0]);
    }
  }
}

void scale_sums(const struct rows *dst, const struct rows *sums, const float *scales, const float *r, const float *bias, int n, int width) {
  for (int i = 0; i < n; i++) {
    const V *s = at(sums, i), *rows = (const V *)r, *b = (const V *)bias, scale = splat_f(scales[i]);
    V *y = at(dst, i);
    for (int k = 0; k < width / 32; k++) {
      V v = sf_mul(sf_of_int(s[k]), sf_mul(scale, rows[k]));
      y[k] = b ? sf_add(v, b[k]) : v;
    }
  }
}

void add_rows(const struct rows *dst, const struct rows *src, int n, int width, float factor) {
  const V f = splat_f(factor);
  for (int i = 0; i < n; i++) {
    V *y = at(dst, i);
    const V *x = at(src, i);
    for (int k = 0; k < width / 32; k++) y[k] = sf_add(y[k], sf_mul(f, x[k]));
  }
}

// partner is what each number of a vector rotates with, at a distance below 32.
INLINE V partner(V x, int distance) { return Q6_V_vdelta_VV(x, splat_b(4 * (uint32_t)distance)); }

void rope(const struct rows *rows, const float *angles, int n, int parts, int width, int rotated, int distance) {
  const int vectors = rotated / 32, apart = distance / 32;
  for (int i = 0; i < n; i++, angles += 2 * rotated) {
    V *x = at(rows, i);
    const V *c = (const V *)angles, *s = c + vectors;
    for (int part = 0; part < parts; part++, x += width / 32) {
      if (!apart)
        for (int k = 0; k < vectors; k++) x[k] = sf_add(sf_mul(x[k], c[k]), sf_mul(partner(x[k], distance), s[k]));
      for (int k = 0; k < apart; k++) {
        const V lo = x[k], hi = x[k + apart];
        x[k] = sf_add(sf_mul(lo, c[k]), sf_mul(hi, s[k]));
        x[k + apart] = sf_add(sf_mul(hi, c[k + apart]), sf_mul(lo, s[k + apart]));
      }
    }
  }
}

// normal_share is how much of a normal distribution lies below x: see ref.normalShare.
INLINE V normal_share(V x) {
  static const float series[] = {0.5307027145f, -0.7265760135f, 0.7107068705f, -0.142248368f, 0.127414796f};
  V a = Q6_Vw_vmin_VwVw(sf_abs(x), splat_f(13));
  V d = sf_add(splat_f(1), sf_mul(a, splat_f(0.23164189f)));
  V t = Q6_Vw_vsub_VwVw(splat_w(0x7ef311c7), d);
  for (int i = 0; i < 3; i++) t = sf_mul(t, sf_sub(splat_f(2), sf_mul(d, t)));
  V p = splat_f(series[0]);
  for (int i = 1; i < 5; i++) p = sf_add(sf_mul(p, t), splat_f(series[i]));
  V q = sf_mul(sf_mul(p, t), exp_minus(sf_mul(sf_mul(a, a), splat_f(0.5f))));
  return Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(zero(), x), q, sf_sub(splat_f(1), q));
}

INLINE V activation(V g, int unit) {
  if (unit == GLU_RELU2) {
    g = Q6_Vw_vmax_VwVw(g, zero());
    return sf_mul(g, g);
  }
  if (unit == GLU_SIGMOID) return sigmoid(g);
  if (unit == GLU_ERF_GELU || unit == GLU_ERF_ALONE) return sf_mul(g, normal_share(g));
  V x = g;
  if (unit == GLU_GELU) x = sf_mul(sf_add(g, sf_mul(sf_mul(sf_mul(g, g), g), splat_f(0x1.6e4e26p-5f))), splat_f(0x1.988454p0f));
  return sf_mul(g, sigmoid(x));
}

// clamped bounds g from above and u on both sides by limit: as words, of which the positive order floats.
INLINE V clamped(V g, V u, V limit, V alpha, V plus) {
  g = Q6_Vw_vmin_VwVw(g, limit);
  u = Q6_V_vor_VV(sf_sign(u), Q6_Vw_vmin_VwVw(sf_abs(u), limit));
  return sf_mul(sf_mul(g, sigmoid(sf_mul(alpha, g))), sf_add(u, plus));
}

void glu(const struct rows *dst, const struct rows *gate, const struct rows *up, int n, int width, int unit, float limit, float alpha, float plus) {
  for (int i = 0; i < n; i++) {
    V *y = at(dst, i);
    const V *g = at(gate, i), *u = at(up, i);
    for (int k = 0; k < width / 32; k++)
      if (unit == GLU_CLAMPED)
        y[k] = clamped(g[k], u[k], splat_f(limit), splat_f(alpha), splat_f(plus));
      else if (unit == GLU_ERF_ALONE)
        y[k] = activation(g[k], unit);
      else
        y[k] = sf_mul(activation(g[k], unit), u[k]);
  }
}

// tile_row sets a row of tiles, tile_column a column.
INLINE void tile_row(uint8_t *tile, V h, int row) {
  V *line = (V *)tile + row / 2;
  const V other = splat_w(row % 2 ? 0xffff : 0xffff0000);
  *line = Q6_V_vor_VV(Q6_V_vand_VV(*line, other), row % 2 ? Q6_Vw_vasl_VwR(h, 16) : h);
}
INLINE void tile_column(uint8_t *tile, V h, int column) {
  ALIGNED uint32_t words[32];
  *(V *)words = h;
  for (int j = 0; j < 16; j++) ((uint32_t *)tile)[32 * j + column] = words[2 * j] | words[2 * j + 1] << 16;
}

// row_of and column_of return a row of a tile, or a column, as words.
INLINE V row_of(const uint8_t *tile, int row) {
  const V h = ((const V *)tile)[row / 2];
  return row % 2 ? Q6_Vuw_vlsr_VuwR(h, 16) : Q6_V_vand_VV(h, splat_w(0xffff));
}
INLINE V column_of(const uint8_t *tile, int column) {
  ALIGNED uint32_t words[32];
  for (int j = 0; j < 16; j++) {
    const uint32_t two = ((const uint32_t *)tile)[32 * j + column];
    words[2 * j] = two & 0xffff, words[2 * j + 1] = two >> 16;
  }
  return *(const volatile V *)words;
}

void to_tiles(uint16_t *dst, const struct rows *src, int n, int parts, int width, uint32_t step, int first, int across, float factor) {
  const V by = splat_f(factor);
  for (int i = 0; i < n; i++) {
    const V *x = at(src, i);
    for (int part = 0; part < parts; part++) {
      uint8_t *tile = (uint8_t *)dst + (uint32_t)part * step;
      for (int k = 0; k < width / 32; k++, x++, tile += 2048) {
        V h = hf_of_sf(sf_mul(*x, by));
        if (across)
          tile_column(tile, h, first + i);
        else
          tile_row(tile, h, first + i);
      }
    }
  }
}

void from_tiles(const struct rows *dst, const uint16_t *tiles, const float *sums, void *saturated, int n, int width, int first, int across) {
  V *flags = saturated;
  for (int i = 0; i < n; i++) {
    V *y = at(dst, i);
    const uint8_t *tile = (const uint8_t *)tiles;
    const V by = splat_f(reciprocal(sums[first + i]));
    for (int k = 0; k < width / 32; k++, tile += 2048) {
      const V h = across ? column_of(tile, first + i) : row_of(tile, first + i);
      y[k] = sf_mul(sf_of_hf(h), by);
      *flags = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vand_VV(h, splat_w(0x7fff)), splat_w(0x7bfe)), splat_w(~0u), *flags);
    }
  }
}

void fold(float *sums, const struct softmax_state *states, struct softmax_state *next, int begins) {
  ALIGNED uint32_t decay[32];
  for (int i = 0; i < 32; i++) decay[i] = states[i].decay & 0xffff;
  *(V *)decay = sf_of_hf(*(V *)decay);
  for (int i = 0; i < 32; i++) {
    const float sum = ((float)states[i].sum_high * 0x1p32f + (float)states[i].sum_low) * 0x1p-24f;
    sums[i] = begins ? sum : sums[i] * float_of(decay[i]) + sum;
    if (next) next[i].max = states[i].max;
  }
}
