// Decode: products of bit-serial weights by lookup, over the rows of a strip
// (T-MAN §4.3). All strips pass by the 16 tables of 256 columns before the next 256;
// the sums of rows wait in y, in the order of lanes. A line of weights, 128 rows by 8
// columns by a bit, wants three packets: two lookups, which take a packet each beside an
// addition, and the shift between them.
#include "hvx.h"
#include "kernels.h"

// Quad q of tile t = [t2 t1 t0] stands at lane [t1 t0 t2 q2 q1 q0] of precompute.
INLINE int table_of(int tile, int pair) { return (tile & 1) << 3 | (tile >> 2 & 1) << 2 | pair; }
INLINE int select_of(int tile) { return tile >> 1 & 1; }

// Sums of the strip's rows: vector i, word j is row 4j+i.
struct sums {
  W a01, a23;
};

INLINE struct sums add_line(struct sums a, V codes, V table, int sel) {
  W x = LOOKUP(codes, table, sel), y = LOOKUP(high_nibbles(codes), table, sel | 2);
  a.a01 = Q6_Ww_vaddacc_WwVhVh(a.a01, LO(x), LO(y));
  a.a23 = Q6_Ww_vaddacc_WwVhVh(a.a23, HI(x), HI(y));
  return a;
}

INLINE struct sums twice(struct sums a) {
  return (struct sums){Q6_Ww_vadd_WwWw(a.a01, a.a01), Q6_Ww_vadd_WwWw(a.a23, a.a23)};
}

// group_sums is the sum of codes times activations over tiles of 32 columns [first,
// first+n) of 256; w is the strip's first block of them.
#define GROUP_SUMS(a, bits, t, w, first, n)                                           \
  a.a01 = Q6_W_vcombine_VV(zero(), zero());                                          \
  a.a23 = a.a01;                                                                     \
  UNROLL for (int plane = 0; plane < bits; plane++) {                                \
    if (plane) a = twice(a);                                                         \
    UNROLL for (int tile = first; tile < first + n; tile++)                          \
      UNROLL for (int pair = 0; pair < 4; pair++)                                    \
        a = add_line(a, (w)[((tile / 2 * bits + plane) * 2 + tile % 2) * 4 + pair],  \
                     t[table_of(tile, pair)], select_of(tile));                      \
  }

INLINE V scaled(V y, V b, V odd) { return Q6_Vw_vadd_VwVw(y, Q6_Vw_vmpyo_VwVh_s1_rnd_sat(b, odd)); }
INLINE V even_as_odd(V h) { return Q6_Vh_vshuffe_VhVh(h, h); }

// natural stores rows 4j+i of vector i in their order.
INLINE void natural(V *dst, const V *a) {
  W r01 = Q6_W_vshuff_VVR(a[1], a[0], -4), r23 = Q6_W_vshuff_VVR(a[3], a[2], -4);
  W lo = Q6_W_vshuff_VVR(LO(r23), LO(r01), -8), hi = Q6_W_vshuff_VVR(HI(r23), HI(r01), -8);
  dst[0] = LO(lo), dst[1] = HI(lo), dst[2] = LO(hi), dst[3] = HI(hi);
}

// start sets y to what the offsets add, or to zero.
static void start(const struct gemv *g) {
  const int shift = g->group == 32 ? 5 : g->group == 64 ? 6 : 7, groups = g->K >> shift;
  const V *of = (const V *)g->offsets;
  V *y = (V *)g->y;
  for (int m = 0; m < g->M / STRIP; m++, y += 4) {
    V r[4] = {zero(), zero(), zero(), zero()};
    if (of)
      for (int i = 0; i < groups; i++, of += 2) {
        uint32_t s = 0;
        for (int j = 0; j < 1 << (shift - 5); j++) s += (uint32_t)g->sums[(i << (shift - 5)) + j];
        const V x = splat_w(s << 3);
        UNROLL for (int j = 0; j < 4; j++) r[j] = scaled(r[j], x, j & 1 ? of[j / 2] : even_as_odd(of[j / 2]));
      }
    UNROLL for (int j = 0; j < 4; j++) y[j] = r[j];
  }
}

#define GROUPED(BITS, COLS)                                                                    \
  static void gemv_##BITS##_##COLS(const struct gemv *g) {                                     \
    const int tiles = g->K / TABLE_COLS, groups = g->K / COLS, in_tile = TABLE_COLS / COLS;     \
    const uint32_t strip = (uint32_t)(g->K / BLOCK) * BITS * 8;                                 \
    const V again = splat_w(g->A == 2 ? ~0u : 0);                                               \
    start(g);                                                                                   \
    for (int kt = 0; kt < tiles; kt++) {                                                        \
      V minus[TABLE_COLS / COLS]; /* B times the sum of activations */                          \
      for (int i = 0; i < in_tile; i++) {                                                       \
        uint32_t s = 0;                                                                         \
        for (int j = 0; j < COLS / 32; j++) s += (uint32_t)g->sums[(kt * in_tile + i) * (COLS / 32) + j]; \
        minus[i] = splat_w((uint32_t)g->B * s);                                                 \
      }                                                                                         \
      const V *t = (const V *)g->tables + kt * 16;                                              \
      const V *w = (const V *)g->weights + kt * 4 * BITS * 8;                                   \
      const V *sc = (const V *)g->scales + kt * in_tile * 2;                                    \
      V *y = (V *)g->y;                                                                         \
      for (int m = 0; m < g->M / STRIP; m++, y += 4, w += strip, sc += groups * 2) {            \
        V r[4] = {y[0], y[1], y[2], y[3]};                                                      \
        UNROLL for (int i = 0; i < TABLE_COLS / COLS; i++) {                                    \
          struct sums a;                                                                        \
          GROUP_SUMS(a, BITS, t, w, i * (COLS / 32), COLS / 32);                                \
          V b[4] = {LO(a.a01), HI(a.a01), LO(a.a23), HI(a.a23)};                                \
          UNROLL for (int j = 0; j < 4; j++) {                                                  \
            b[j] = Q6_Vw_vadd_VwVw(Q6_Vw_vsub_VwVw(b[j], minus[i]), Q6_V_vand_VV(b[j], again)); \
            V s = sc[2 * i + j / 2];                                                            \
            r[j] = scaled(r[j], b[j], j & 1 ? s : even_as_odd(s));                              \
          }                                                                                     \
        }                                                                                       \
        UNROLL for (int j = 0; j < 4; j++) y[j] = r[j];                                         \
      }                                                                                         \
    }                                                                                           \
    V *y = (V *)g->y;                                                                           \
    for (int m = 0; m < g->M / STRIP; m++, y += 4) natural(y, (V[4]){y[0], y[1], y[2], y[3]});  \
  }

#define WHOLE(BITS)                                                                             \
  static void gemv_##BITS##_K(const struct gemv *g) {                                           \
    const uint32_t strip = (uint32_t)(g->K / BLOCK) * BITS * 8;                                 \
    const V again = splat_w(g->A == 2 ? ~0u : 0);                                               \
    for (int kt = 0; kt < g->K / TABLE_COLS; kt++) {                                            \
      const V *t = (const V *)g->tables + kt * 16;                                              \
      const V *w = (const V *)g->weights + kt * 4 * BITS * 8;                                   \
      V *y = (V *)g->y;                                                                         \
      for (int m = 0; m < g->M / STRIP; m++, y += 4, w += strip) {                              \
        struct sums a;                                                                          \
        GROUP_SUMS(a, BITS, t, w, 0, 8);                                                        \
        V b[4] = {LO(a.a01), HI(a.a01), LO(a.a23), HI(a.a23)};                                  \
        UNROLL for (int j = 0; j < 4; j++) y[j] = kt ? Q6_Vw_vadd_VwVw(y[j], b[j]) : b[j];      \
      }                                                                                         \
    }                                                                                           \
    uint32_t sum = 0;                                                                           \
    for (int i = 0; i < g->K / 32; i++) sum += (uint32_t)g->sums[i];                            \
    const V minus = splat_w((uint32_t)g->B * sum);                                              \
    V *y = (V *)g->y;                                                                           \
    for (int m = 0; m < g->M / STRIP; m++, y += 4) {                                            \
      V b[4];                                                                                   \
      UNROLL for (int j = 0; j < 4; j++)                                                        \
        b[j] = Q6_Vw_vadd_VwVw(Q6_Vw_vsub_VwVw(y[j], minus), Q6_V_vand_VV(y[j], again));        \
      natural(y, b);                                                                            \
    }                                                                                           \
  }

#define KERNELS(BITS) GROUPED(BITS, 32) GROUPED(BITS, 64) GROUPED(BITS, 128) WHOLE(BITS)
KERNELS(1)
KERNELS(2)
KERNELS(4)

void gemv(const struct gemv *g) {
#define BY_GROUP(BITS)                               \
  switch (g->group) {                                \
  case 32: gemv_##BITS##_32(g); return;              \
  case 64: gemv_##BITS##_64(g); return;              \
  case 128: gemv_##BITS##_128(g); return;            \
  default: gemv_##BITS##_K(g); return;               \
  }
  switch (g->bits) {
  case 1: BY_GROUP(1)
  case 2: BY_GROUP(2)
  default: BY_GROUP(4)
  }
}
