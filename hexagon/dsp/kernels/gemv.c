// Decode: products of bit-serial weights by lookup, over the rows of a strip (T-MAN §4.3,
// §5). DMA brings weights and scales to TCM tile by tile, two ahead of the one that is looked
// up, for some rows of activations after the others: more rows bring no more weights, and four, or
// two, share their loads (lines.h). Of a tile all strips pass by the 16 tables of 256 columns
// before the next 256. The sums of rows wait in TCM, in the order of lanes, and leave by DMA. A
// line of weights, 128 rows by 8 columns by a bit, wants three packets for a row: two
// lookups, which take a packet each beside an addition, and the shift between them.
#include "hvx.h"
#include "kernels.h"
#include "lines.h"
#include "machine.h"

// Quad q of tile t = [t2 t1 t0] stands at lane [t1 t0 t2 q2 q1 q0] of precompute.
INLINE int table_of(int tile, int pair) { return (tile & 1) << 3 | (tile >> 2 & 1) << 2 | pair; }
INLINE int select_of(int tile) { return tile >> 1 & 1; }

INLINE struct sums add_line(struct sums a, V codes, V table, int sel) {
  W x = LOOKUP(codes, table, sel), y = LOOKUP(high_nibbles(codes), table, sel | 2);
  a.a01 = Q6_Ww_vaddacc_WwVhVh(a.a01, LO(x), LO(y));
  a.a23 = Q6_Ww_vaddacc_WwVhVh(a.a23, HI(x), HI(y));
  return a;
}

INLINE struct sums twice(struct sums a) {
  return (struct sums){Q6_Ww_vadd_WwWw(a.a01, a.a01), Q6_Ww_vadd_WwWw(a.a23, a.a23)};
}

// Products of bytes: of four columns by 32 rows a vector with the low bytes of activations,
// and one with the high ones, which is two instructions of one packet; lookups of a code of 8
// bits would take eight lines.
INLINE V same(V codes, V values) { return (void)values, codes; }
INLINE V low_value(V codes, V values) { return Q6_Vb_vlut32_VbVbR_nomatch(codes, values, 0); }
INLINE V high_value(V codes, V values) { return low_value(high_nibbles(codes), values); }

// add_quad adds four columns, of four vectors of codes.
#define ADD_QUAD(low, high, w, value, values, x)                                      \
  UNROLL for (int i = 0; i < 4; i++) {                                               \
    const V q = value((w)[i], values);                                               \
    low[i] = Q6_Vuw_vrmpyacc_VuwVubRub(low[i], q, (int)(x));                         \
    high[i] = Q6_Vw_vrmpyacc_VwVubRb(high[i], q, (int)((x) >> 32));                  \
  }

// byte_sums is group_sums of codes in bytes; x has the bytes of 256 columns.
#define BYTE_SUMS(b, bits, x, values, w, first, n)                                    \
  V low[4] = {zero(), zero(), zero(), zero()}, high[4] = {zero(), zero(), zero(), zero()}; \
  for (int quad = (first) * 8; quad < ((first) + (n)) * 8; quad += 8 / bits) {       \
    const V *line = (w) + quad * bits / 2;                                           \
    if (bits == 8) {                                                                 \
      ADD_QUAD(low, high, line, same, values, ((const uint64_t *)(x))[quad])         \
    } else {                                                                         \
      ADD_QUAD(low, high, line, low_value, values, ((const uint64_t *)(x))[quad])    \
      ADD_QUAD(low, high, line, high_value, values, ((const uint64_t *)(x))[quad + 1]) \
    }                                                                                \
  }                                                                                  \
  UNROLL for (int j = 0; j < 4; j++) b[j] = Q6_Vw_vadd_VwVw(low[j], Q6_Vw_vasl_VwR(high[j], 8));

// group_sums is the sum of codes times activations over tiles of 32 columns [first,
// first+n) of 256; w is the strip's first block of them.
#define GROUP_SUMS(b, bits, t, values, w, first, n)                                   \
  struct sums a;                                                                     \
  (void)(values);                                                                    \
  a.a01 = Q6_W_vcombine_VV(zero(), zero());                                          \
  a.a23 = a.a01;                                                                     \
  UNROLL for (int plane = 0; plane < bits; plane++) {                                \
    if (plane) a = twice(a);                                                         \
    UNROLL for (int tile = first; tile < first + n; tile++)                          \
      UNROLL for (int pair = 0; pair < 4; pair++)                                    \
        a = add_line(a, (w)[((tile / 2 * bits + plane) * 2 + tile % 2) * 4 + pair],  \
                     (t)[table_of(tile, pair)], select_of(tile));                    \
  }                                                                                  \
  b[0] = LO(a.a01), b[1] = HI(a.a01), b[2] = LO(a.a23), b[3] = HI(a.a23);

// values_of is the table of codes of four bits in bytes: number n%16 is byte 2n, so that what
// the high half of a byte has does not matter.
INLINE V values_of(const struct gemv *g) {
  if (!g->values) return zero();
  const V once = LO(Q6_Wuh_vunpack_Vub(*(const V *)g->values));
  return Q6_V_vmux_QVV(Q6_Q_vsetq_R(32), once, Q6_V_vror_VR(once, -32));
}

INLINE V scaled(V y, V b, V odd) { return Q6_Vw_vadd_VwVw(y, Q6_Vw_vmpyo_VwVh_s1_rnd_sat(b, odd)); }
INLINE V even_as_odd(V h) { return Q6_Vh_vshuffe_VhVh(h, h); }

// natural stores rows 4j+i of vector i in their order.
INLINE void natural(V *dst, const V *a) {
  W r01 = Q6_W_vshuff_VVR(a[1], a[0], -4), r23 = Q6_W_vshuff_VVR(a[3], a[2], -4);
  W lo = Q6_W_vshuff_VVR(LO(r23), LO(r01), -8), hi = Q6_W_vshuff_VVR(HI(r23), HI(r01), -8);
  dst[0] = LO(lo), dst[1] = HI(lo), dst[2] = LO(hi), dst[3] = HI(hi);
}

// A part is the codes, scales and offsets of a tile in TCM: [strips] of cols columns, the
// first of which is number column of the matrix.
struct part {
  const V *codes, *scales, *offsets; // offsets: 0 if there are none
  int strips, cols, column;
  V *sums; // of the rows of its strips, for the first row of activations
};

// The tables, the sums of activations and the sums of products of a row of activations.
INLINE const V *tables_of(const struct gemv *g, int row) { return (const V *)((const uint8_t *)g->tables + (uint32_t)row * g->row); }
INLINE const int32_t *activations_of(const struct gemv *g, int row) { return (const int32_t *)((const uint8_t *)tables_of(g, row) + g->table); }
INLINE V *sums_of(const struct gemv *g, V *sums, int row) { return sums + row * (g->M / 32); }

// sum_of is the sum of activations of n times 32 columns.
INLINE uint32_t sum_of(const int32_t *sums, int n) {
  uint32_t s = 0;
  for (int i = 0; i < n; i++) s += (uint32_t)sums[i];
  return s;
}

// add_scaled adds b, of vector j of the strip's sums, times scales.
INLINE V add_scaled(V r, V b, const V *scales, int j) { return scaled(r, b, j & 1 ? scales[j / 2] : even_as_odd(scales[j / 2])); }

// TABLES is how many vectors OpPrecompute makes of 256 activations, SUMS what adds up a group.
#define GROUPED(NAME, BITS, COLS, TABLES, SUMS)                                                   \
  static void NAME##_##COLS(const struct gemv *g, const struct part *p, int row) {                \
    enum { IN_TABLES = TABLE_COLS / COLS };                                                       \
    const int strip = p->cols / BLOCK * BITS * 8, groups = p->cols / COLS * 2; /* vectors */      \
    const V again = splat_w(g->A == 2 ? ~0u : 0), values = values_of(g);                          \
    for (int kt = 0; kt < p->cols / TABLE_COLS; kt++) {                                           \
      const int all = p->column / TABLE_COLS + kt;                                                \
      V minus[IN_TABLES], plus[IN_TABLES]; /* B times the sum of activations; eight times that */ \
      for (int i = 0; i < IN_TABLES; i++) {                                                       \
        const uint32_t s = sum_of(activations_of(g, row) + (all * IN_TABLES + i) * (COLS / 32), COLS / 32); \
        minus[i] = splat_w((uint32_t)g->B * s), plus[i] = splat_w(s << 3);                        \
      }                                                                                           \
      const V *t = tables_of(g, row) + all * TABLES;                                              \
      const V *w = p->codes + kt * 4 * BITS * 8, *sc = p->scales + kt * IN_TABLES * 2;            \
      const V *of = p->offsets ? p->offsets + kt * IN_TABLES * 2 : 0;                             \
      V *y = sums_of(g, p->sums, row);                                                            \
      for (int m = 0; m < p->strips; m++, y += 4, w += strip, sc += groups) {                     \
        V r[4] = {y[0], y[1], y[2], y[3]};                                                        \
        UNROLL for (int i = 0; i < IN_TABLES; i++) {                                              \
          V b[4];                                                                                 \
          SUMS(b, BITS, t, values, w, i * (COLS / 32), COLS / 32);                                \
          UNROLL for (int j = 0; j < 4; j++) {                                                    \
            b[j] = Q6_Vw_vadd_VwVw(Q6_Vw_vsub_VwVw(b[j], minus[i]), Q6_V_vand_VV(b[j], again));   \
            r[j] = add_scaled(r[j], b[j], sc + 2 * i, j);                                         \
          }                                                                                       \
        }                                                                                         \
        if (of) {                                                                                 \
          for (int i = 0; i < IN_TABLES; i++)                                                     \
            UNROLL for (int j = 0; j < 4; j++) r[j] = add_scaled(r[j], plus[i], of + 2 * i, j);   \
          of += groups;                                                                           \
        }                                                                                         \
        UNROLL for (int j = 0; j < 4; j++) y[j] = r[j];                                           \
      }                                                                                           \
    }                                                                                             \
  }

#define WHOLE(BITS)                                                                               \
  static void part_##BITS##_K(const struct gemv *g, const struct part *p, int row) {              \
    const int strip = p->cols / BLOCK * BITS * 8;                                                 \
    for (int kt = 0; kt < p->cols / TABLE_COLS; kt++) {                                           \
      const V *t = tables_of(g, row) + (p->column / TABLE_COLS + kt) * 16;                        \
      const V *w = p->codes + kt * 4 * BITS * 8;                                                  \
      V *y = sums_of(g, p->sums, row);                                                            \
      for (int m = 0; m < p->strips; m++, y += 4, w += strip) {                                   \
        V b[4];                                                                                   \
        GROUP_SUMS(b, BITS, t, 0, w, 0, 8);                                                       \
        UNROLL for (int j = 0; j < 4; j++) y[j] = Q6_Vw_vadd_VwVw(y[j], b[j]);                    \
      }                                                                                           \
    }                                                                                             \
  }

#define GROUPS(NAME, BITS, TABLES, SUMS) \
  GROUPED(NAME, BITS, 32, TABLES, SUMS) GROUPED(NAME, BITS, 64, TABLES, SUMS) GROUPED(NAME, BITS, 128, TABLES, SUMS)
GROUPS(part_1, 1, 16, GROUP_SUMS) WHOLE(1)
GROUPS(part_2, 2, 16, GROUP_SUMS) WHOLE(2)
GROUPS(part_4, 4, 16, GROUP_SUMS) WHOLE(4)
GROUPS(part_8, 8, 4, BYTE_SUMS)
GROUPS(part_values, 4, 4, BYTE_SUMS)

// SHARED is GROUPED, or WHOLE, of ROWS rows from row on; N looks up a plane of COLS columns.
#define SHARED(ROWS, NAME, COLS, N, FLAT)                                                         \
  static void shared_##ROWS##_##NAME(const struct gemv *g, const struct part *p, int row) {       \
    enum { IN_TABLES = TABLE_COLS / COLS };                                                       \
    const int bits = g->bits, strip = p->cols / BLOCK * bits * 8, groups = p->cols / COLS * 2;    \
    const int apart = g->M / 32;                                                                  \
    const V again = splat_w(g->A == 2 ? ~0u : 0);                                                 \
    for (int kt = 0; kt < p->cols / TABLE_COLS; kt++) {                                           \
      const int all = p->column / TABLE_COLS + kt;                                                \
      const V *w = p->codes + kt * 4 * bits * 8, *sc = p->scales + kt * IN_TABLES * 2;            \
      const V *of = p->offsets ? p->offsets + kt * IN_TABLES * 2 : 0;                             \
      const V *t[ROWS];                                                                           \
      V minus[IN_TABLES][ROWS], plus[IN_TABLES][ROWS];                                            \
      for (int r = 0; r < ROWS; r++) {                                                            \
        t[r] = tables_of(g, row + r) + all * 16;                                                  \
        for (int i = 0; i < IN_TABLES && !FLAT; i++) {                                            \
          const int32_t *sums = activations_of(g, row + r) + (all * IN_TABLES + i) * (COLS / 32); \
          const uint32_t s = sum_of(sums, COLS / 32);                                             \
          minus[i][r] = splat_w((uint32_t)g->B * s), plus[i][r] = splat_w(s << 3);                \
        }                                                                                         \
      }                                                                                           \
      V *y = sums_of(g, p->sums, row);                                                            \
      for (int m = 0; m < p->strips; m++, y += 4, w += strip, sc += groups) {                     \
        for (int i = 0; i < IN_TABLES; i++) {                                                     \
          struct sums a[ROWS];                                                                    \
          UNROLL for (int r = 0; r < ROWS; r++) a[r] = (struct sums){Q6_W_vcombine_VV(zero(), zero()), Q6_W_vcombine_VV(zero(), zero())}; \
          const int tile = i * (COLS / 32);                                                       \
          const V *u[ROWS];                                                                       \
          UNROLL for (int r = 0; r < ROWS; r++) u[r] = t[r] + table_of(tile, 0);                  \
          const V *codes = w + (tile / 2 * bits * 2 + tile % 2) * 4;                              \
          N(a, codes, bits * 8, u, select_of(tile));                                              \
          for (int plane = 1; plane < bits; plane++) {                                            \
            UNROLL for (int r = 0; r < ROWS; r++) a[r] = twice(a[r]);                             \
            N(a, codes += 8, bits * 8, u, select_of(tile));                                       \
          }                                                                                       \
          V *z = y;                                                                               \
          UNROLL for (int r = 0; r < ROWS; r++, z += apart) {                                     \
            const V b[4] = {LO(a[r].a01), HI(a[r].a01), LO(a[r].a23), HI(a[r].a23)};              \
            V x[4] = {z[0], z[1], z[2], z[3]};                                                    \
            UNROLL for (int j = 0; j < 4; j++) {                                                  \
              const V c = Q6_Vw_vadd_VwVw(Q6_Vw_vsub_VwVw(b[j], minus[i][r]), Q6_V_vand_VV(b[j], again)); \
              x[j] = FLAT ? Q6_Vw_vadd_VwVw(x[j], b[j]) : add_scaled(x[j], c, sc + 2 * i, j);     \
            }                                                                                     \
            UNROLL for (int j = 0; j < 4; j++) z[j] = x[j];                                       \
          }                                                                                       \
        }                                                                                         \
        if (of) {                                                                                 \
          V *z = y;                                                                               \
          for (int r = 0; r < ROWS; r++, z += apart) {                                            \
            V x[4] = {z[0], z[1], z[2], z[3]};                                                    \
            for (int i = 0; i < IN_TABLES; i++)                                                   \
              UNROLL for (int j = 0; j < 4; j++) x[j] = add_scaled(x[j], plus[i][r], of + 2 * i, j); \
            UNROLL for (int j = 0; j < 4; j++) z[j] = x[j];                                       \
          }                                                                                       \
          of += groups;                                                                           \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }
SHARED(2, 32, 32, two_4, 0) SHARED(2, 64, 64, two_8, 0) SHARED(2, 128, 128, two_16, 0) SHARED(2, K, 256, two_32, 1)
SHARED(4, 32, 32, four_4, 0) SHARED(4, 64, 64, four_8, 0) SHARED(4, 128, 128, four_16, 0) SHARED(4, K, 256, four_32, 1)

typedef void (*kernel)(const struct gemv *g, const struct part *p, int row);

// sharing_of returns what looks up 2 rows, or 4, in codes that do not stand in bytes, and kernel_of what does one.
static kernel sharing_of(const struct gemv *g, int rows) {
#define SHARING(GROUP) rows == 4 ? shared_4_##GROUP : shared_2_##GROUP
  if (g->rows < rows || g->values || g->bits == 8) return 0;
  return g->group == 32 ? SHARING(32) : g->group == 64 ? SHARING(64) : g->group == 128 ? SHARING(128) : SHARING(K);
}

static kernel kernel_of(const struct gemv *g) {
#define BY_GROUP(NAME, WHOLE) g->group == 32 ? NAME##_32 : g->group == 64 ? NAME##_64 : g->group == 128 ? NAME##_128 : WHOLE
  switch (g->bits) {
  case 1: return BY_GROUP(part_1, part_1_K);
  case 2: return BY_GROUP(part_2, part_2_K);
  case 8: return BY_GROUP(part_8, part_8_128);
  default: return g->values ? BY_GROUP(part_values, part_values_128) : BY_GROUP(part_4, part_4_K);
  }
}

// finish turns the sums of a row into results, in the order of the matrix: with a scale a
// row of it they still lack their B times the sum of activations.
static void finish(const struct gemv *g, V *y, int row) {
  const int whole = g->group == g->K;
  const V minus = splat_w(whole ? (uint32_t)g->B * sum_of(activations_of(g, row), g->K / 32) : 0), again = splat_w(whole && g->A == 2 ? ~0u : 0);
  for (int m = 0; m < g->M / STRIP; m++, y += 4) {
    V b[4];
    UNROLL for (int j = 0; j < 4; j++) b[j] = Q6_Vw_vadd_VwVw(Q6_Vw_vsub_VwVw(y[j], minus), Q6_V_vand_VV(y[j], again));
    natural(y, b);
  }
}

// A load is a tile on its way to TCM: the number of its last transfer, and where it lies then.
struct load {
  uint32_t number;
  struct part part;
};

// pieces begins the transfers of a part of each of a tile's strips, of which the whole has
// size bytes: one if the part is all of it.
static const V *pieces(const struct gemv *g, struct load *l, uint8_t **to, const void *from, uint32_t offset, uint32_t part, uint32_t size) {
  const uint8_t *src = (const uint8_t *)from + offset;
  const V *begin = (const V *)*to;
  const uint32_t n = (uint32_t)l->part.strips, count = part == size ? 1 : n, bytes = part == size ? part * n : part;
  for (uint32_t i = 0; i < count; i++, src += size, *to += bytes) l->number = dma_push(g->engine, *to, src, bytes, DMA_SRC_BYPASS | DMA_OWN_PAGES);
  return begin;
}

// fetch begins the load of the tile at strip m and column k into a buffer.
static void fetch(const struct gemv *g, struct load *l, int m, int k, uint8_t *buffer) {
  const int strips = g->M / STRIP;
  struct part *p = &l->part;
  p->strips = strips - m < g->strips ? strips - m : g->strips, p->cols = g->K - k < g->cols ? g->K - k : g->cols;
  p->column = k, p->sums = (V *)g->spill + 4 * m, p->scales = p->offsets = 0;
  const uint32_t line = (uint32_t)g->bits * STRIP / 8, row = (uint32_t)g->K * line, at = (uint32_t)m * row + (uint32_t)k * line;
  p->codes = pieces(g, l, &buffer, g->weights, at, (uint32_t)p->cols * line, row);
  if (g->group == g->K) return;
  const int shift = g->group == 32 ? 5 : g->group == 64 ? 6 : 7;
  const uint32_t width = (uint32_t)(g->K >> shift) * STRIP * 2, part = (uint32_t)(p->cols >> shift) * STRIP * 2;
  const uint32_t scale = (uint32_t)m * width + (uint32_t)(k >> shift) * STRIP * 2;
  p->scales = pieces(g, l, &buffer, g->scales, scale, part, width);
  if (g->offsets) p->offsets = pieces(g, l, &buffer, g->offsets, scale, part, width);
}

// look_up adds the products of a tile in TCM to the sums of all rows, of as many at a time as share its codes.
static void look_up(const struct gemv *g, const struct part *p, kernel one, kernel two, kernel four) {
  for (int row = 0, n; row < g->rows; row += n) {
    const int left = g->rows - row;
    n = four && left >= 4 ? 4 : two && left >= 2 ? 2 : 1;
    EMULATED(machine_gemv(p->codes, (uint32_t)(p->strips * p->cols / 8 * g->bits), p->sums, (uint32_t)(p->strips * (p->cols / TABLE_COLS) * 4 * n));)
    (n == 4 ? four : n == 2 ? two : one)(g, p, row);
  }
}

// A loader brings the tiles of a product, in their order, to its buffers in turn. An engine has two: of the product that
// runs, and of the next one, whose first tiles come while that ends.
struct loader {
  struct load loads[GEMV_BUFFERS]; // of each buffer
  int m, k, fetched, free;         // the next tile, how many have been begun, and the buffer of the next one
};
static struct loader loaders[DMA_ENGINES][2];
static uint8_t turns[DMA_ENGINES]; // which of them is the product's that runs

// fetch_next begins the load of the next tile, unless all, or most, have been begun.
static void fetch_next(const struct gemv *g, struct loader *l, int most) {
  if (l->k >= g->K || l->fetched >= most) return;
  fetch(g, &l->loads[l->free], l->m / STRIP, l->k, g->buffers + (uint32_t)l->free * g->buffer);
  if ((l->m += g->strips * STRIP) >= g->M) l->m = 0, l->k += g->cols;
  if (++l->free == GEMV_BUFFERS) l->free = 0;
  l->fetched++;
}

static void unload(struct loader *l) { l->m = l->k = l->fetched = l->free = 0; }

void gemv(const struct gemv *g, const struct gemv *next) {
  struct loader *l = &loaders[g->engine][turns[g->engine]], *behind = &loaders[g->engine][turns[g->engine] ^= 1];
  const kernel one = kernel_of(g), two = sharing_of(g, 2), four = sharing_of(g, 4);
  V *sums = (V *)g->spill;
  for (int tile = 0, at = 0;; tile++, at = at + 1 < GEMV_BUFFERS ? at + 1 : 0) {
    while (l->k < g->K && l->fetched < tile + GEMV_BUFFERS) fetch_next(g, l, tile + GEMV_BUFFERS);
    if (tile == l->fetched) break;
    if (next && l->k >= g->K) fetch_next(next, behind, 1); // DMA goes on with it; more would keep results waiting
    if (!tile)
      for (int i = 0; i < g->rows * (g->M / 32); i++) sums[i] = zero();
    const struct load *now = &l->loads[at];
    dma_wait(g->engine, now->number);
    look_up(g, &now->part, one, two, four);
  }
  unload(l);
  uint32_t number = 0;
  for (int row = 0; row < g->rows; row++) {
    V *y = sums_of(g, sums, row);
    finish(g, y, row);
    number = dma_push(g->engine, (uint8_t *)g->y + (uint32_t)row * g->stride, y, (uint32_t)g->M * 4, 0);
  }
  for (int i = 2; next && i <= GEMV_BUFFERS; i++) fetch_next(next, behind, i);
  dma_wait(g->engine, number);
}

void gemv_forget(void) {
  for (int e = 0; e < DMA_ENGINES; e++) {
    struct loader *l = &loaders[e][turns[e]];
    if (l->fetched) dma_wait(e, l->loads[l->free ? l->free - 1 : GEMV_BUFFERS - 1].number);
    unload(l);
  }
}
