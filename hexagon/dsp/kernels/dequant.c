// Prefill: the decode layout becomes fp16 tiles by two lookups (T-MAN §4.1).
//   first   a nibble of a plane -> a halfword of 4 codes, one table for each plane
//   second  a code and the row's place among four -> fp16, scale and offset baked in
#include "hf.h"
#include "hvx.h"
#include "kernels.h"

// Table of plane p: bit i of the nibble -> bit p of nibble i of the halfword. The four
// planes' tables fill a vector.
static const uint16_t repack[64] ALIGNED = {
#define E(n, v) (((n) & 1) | ((n) & 2) << 3 | ((n) & 4) << 6 | ((n) & 8) << 9) << (v)
#define P(n, v) E(n, v), E(n, v + 2)
#define T(v) P(0, v), P(1, v), P(2, v), P(3, v), P(4, v), P(5, v), P(6, v), P(7, v), P(8, v), \
             P(9, v), P(10, v), P(11, v), P(12, v), P(13, v), P(14, v), P(15, v)
    T(0), T(1)};

INLINE V fused(V values, V s, V o, int offsets) {
  V r = hf_mul(values, s);
  return offsets ? hf_add(r, o) : r;
}

// spread4 makes 32 vectors, one for each four rows: words 0..15 are rows 4j and 4j+1,
// words 16..31 rows 4j+2 and 4j+3. a and b are scales in the order of lanes.
INLINE void spread4(V *r, V a, V b) {
  W p = exchange(a, b, 64);
  r[0] = LO(p), r[16] = HI(p);
  UNROLL for (int step = 8; step; step >>= 1)
    UNROLL for (int i = 0; i < 32; i += 2 * step) {
      W d = exchange(r[i], r[i], 4 * step);
      r[i] = LO(d), r[i + step] = HI(d);
    }
}

// spread2 makes 8 vectors, one for each 16 rows; halfword [j0 i x c1 c0 j1] is that of
// row 4j+2x+i and code c.
INLINE void spread2(V *r, V a, V b) {
  a = Q6_Vh_vdeal_Vh(Q6_Vh_vdeal_Vh(a)), b = Q6_Vh_vdeal_Vh(Q6_Vh_vdeal_Vh(b)); // [j0 i j4 j3 j2 j1]
  W p = exchange(a, b, 16);
  r[0] = LO(p), r[4] = HI(p);
  UNROLL for (int step = 2; step; step >>= 1)
    UNROLL for (int i = 0; i < 8; i += 2 * step) {
      W d = exchange(r[i], r[i], 4 * step);
      r[i] = LO(d), r[i + step] = HI(d);
    }
}

// fuse makes the second lookup's tables of one group: fp16(fp16(v*s) + o).
#define FUSE(NAME, N, SPREAD)                                                              \
  static void NAME(V *lut, const V *scales, const V *offsets, V values) {                  \
    V s[N], o[N];                                                                          \
    SPREAD(s, hf_of_int(scales[0], 15), hf_of_int(scales[1], 15));                         \
    if (offsets) {                                                                         \
      SPREAD(o, hf_of_int(offsets[0], 12), hf_of_int(offsets[1], 12));                     \
      for (int i = 0; i < N; i++) lut[i] = fused(values, s[i], o[i], 1);                   \
    } else {                                                                               \
      for (int i = 0; i < N; i++) lut[i] = fused(values, s[i], zero(), 0);                 \
    }                                                                                      \
  }
FUSE(fuse4, 32, spread4)
FUSE(fuse2, 8, spread2)

// repack_half makes bytes of codes of 32 columns: word j of p[c] is four rows; its low
// nibbles column c, its high ones column 16+c.
#define REPACK_HALF(p, w, BITS, half)                                                      \
  UNROLL for (int pair = 0; pair < 4; pair++) {                                            \
    V e0 = zero(), o0 = e0, e1 = e0, o1 = e0;                                              \
    UNROLL for (int i = 0; i < BITS; i++) {                                                \
      V line = (w)[(i * 2 + (half)) * 4 + pair];                                           \
      W x = LOOKUP(line, rep, BITS - 1 - i), y = LOOKUP(high_nibbles(line), rep, BITS - 1 - i); \
      e0 = i ? Q6_V_vor_VV(e0, LO(x)) : LO(x), o0 = i ? Q6_V_vor_VV(o0, HI(x)) : HI(x);    \
      e1 = i ? Q6_V_vor_VV(e1, LO(y)) : LO(y), o1 = i ? Q6_V_vor_VV(o1, HI(y)) : HI(y);    \
    }                                                                                      \
    W u = exchange(e0, o0, 1), v = exchange(e1, o1, 1);                                    \
    p[4 * pair] = LO(u), p[4 * pair + 1] = HI(u);                                          \
    p[4 * pair + 2] = LO(v), p[4 * pair + 3] = HI(v);                                      \
  }

INLINE W second4(V codes, const V *lut, int j) {
  V t = lut[j];
  W r = Q6_Wh_vlut16_VbVhR(codes, t, 0);
  r = Q6_Wh_vlut16or_WhVbVhR(r, codes, t, 1);
  r = Q6_Wh_vlut16or_WhVbVhR(r, codes, t, 2);
  return Q6_Wh_vlut16or_WhVbVhR(r, codes, t, 3);
}
INLINE W second2(V codes, const V *lut, int j) { return LOOKUP(codes, lut[j >> 2], j & 3); }
INLINE W second_flat(V codes, const V *lut, int j) {
  (void)j;
  return LOOKUP(codes, lut[0], 0);
}

// rows_of_words transposes 16x32 words: the column into word bits 0..3, rows into the vector.
INLINE void rows_of_words(V *p) {
  UNROLL for (int s = 0; s < 4; s++)
    UNROLL for (int i = 0; i < 16; i++)
      if (!(i >> s & 1)) {
        W x = exchange(p[i], p[i | 1 << s], 4 << s);
        p[i] = LO(x), p[i | 1 << s] = HI(x);
      }
}

// A half block: 128 rows of 32 columns to the tiles of 4 row tiles, stride apart.
#define HALF(NAME, BITS, ROWS, SECOND)                                                     \
  static void NAME(uint16_t *tiles, uint32_t stride, const V *w, int half, const V *lut) { \
    const V rep = *(const V *)repack, low = splat_b(15), rows = splat_w(ROWS);             \
    V p[16];                                                                               \
    REPACK_HALF(p, w, BITS, half)                                                          \
    rows_of_words(p);                                                                      \
    UNROLL for (int g = 0; g < 16; g++) { /* rows 4g.. and 64+4g.. of 32 columns */         \
      W x = exchange(Q6_V_vand_VV(p[g], low), high_nibbles(p[g]), 64);                     \
      UNROLL for (int b = 0; b < 2; b++) {                                                 \
        const int j = g + 16 * b;                                                          \
        W r = SECOND(Q6_V_vor_VV(b ? HI(x) : LO(x), rows), lut, j);                        \
        V *out = (V *)(tiles + (uint32_t)(j >> 3) * stride) + (j & 7) * 2;                 \
        out[0] = LO(r), out[1] = HI(r);                                                    \
      }                                                                                    \
    }                                                                                      \
  }
HALF(half_1, 1, 0x0c080400u, second2)
HALF(half_2, 2, 0x0c080400u, second2)
HALF(half_4, 4, 0x30201000u, second4)
HALF(half_flat_1, 1, 0, second_flat)
HALF(half_flat_2, 2, 0, second_flat)
HALF(half_flat_4, 4, 0, second_flat)

// A half block to tiles of bytes, those of rows 64.. stride bytes behind those of rows 0..63.
#define BYTE_HALF(NAME, BITS)                                                              \
  static void NAME(uint8_t *tiles, uint32_t stride, const V *w, int half) {                \
    const V rep = *(const V *)repack, low = splat_b(15);                                   \
    V p[16];                                                                               \
    REPACK_HALF(p, w, BITS, half)                                                          \
    rows_of_words(p);                                                                      \
    UNROLL for (int g = 0; g < 16; g++) { /* rows 4g.. and 64+4g.., columns before rows */ \
      W x = exchange(Q6_V_vand_VV(p[g], low), high_nibbles(p[g]), 64);                     \
      UNROLL for (int b = 0; b < 2; b++)                                                   \
        ((V *)(tiles + (uint32_t)b * stride))[g] = Q6_Vb_vdeal_Vb(Q6_Vh_vdeal_Vh(b ? HI(x) : LO(x))); \
    }                                                                                      \
  }
BYTE_HALF(byte_half_1, 1)
BYTE_HALF(byte_half_2, 2)
BYTE_HALF(byte_half_4, 4)

void byte_tiles(uint8_t *tiles, const uint8_t *codes, int n, int all, int bits) {
  void (*half)(uint8_t *, uint32_t, const V *, int) = bits == 1 ? byte_half_1 : bits == 2 ? byte_half_2 : byte_half_4;
  for (int i = 0; i < 2 * n; i++, tiles += 2 * TILE) half(tiles, (uint32_t)all * 4 * TILE, (const V *)codes + i / 2 * bits * 8, i & 1);
}

// Codes in bytes: vector 4q+i of a half block has columns 4q..4q+3 of rows 4j+i, as bytes
// 4j..4j+3. rows_of makes them vectors j of rows 4j..4j+3, where byte 4c+2i+h is column c of
// row 4j+2h+i, so that even bytes become a pair of rows of a tile, and odd ones the next.
INLINE void rows_of(V *p, const V *w, int bits, int half) {
  if (bits == 8) {
    UNROLL for (int i = 0; i < 32; i++) p[i] = w[half * 32 + i];
  } else {
    UNROLL for (int i = 0; i < 16; i++) {
      const V line = w[half * 16 + i];
      p[i / 4 * 8 + i % 4] = Q6_V_vand_VV(line, splat_b(15)), p[i / 4 * 8 + 4 + i % 4] = high_nibbles(line);
    }
  }
  static const struct { int vector, at; } swaps[] = {{16, 64}, {8, 32}, {4, 16}, {2, 8}, {1, 2 | 8}, {1, 1 | 4}};
  UNROLL for (int s = 0; s < 6; s++)
    UNROLL for (int i = 0; i < 32; i++)
      if (!(i & swaps[s].vector)) {
        W x = exchange(p[i], p[i | swaps[s].vector], swaps[s].at);
        p[i] = LO(x), p[i | swaps[s].vector] = HI(x);
      }
}

// Scales or offsets of a strip's group in fp16: word j of the first vector is rows 4j and
// 4j+1, of the second 4j+2 and 4j+3.
union pairs {
  V v[2];
  uint32_t words[64];
};

INLINE void pairs_of(union pairs *p, const int16_t *numbers, uint32_t group, int shift) {
  const V *v = (const V *)numbers + group * 2;
  p->v[0] = hf_of_int(v[0], shift), p->v[1] = hf_of_int(v[1], shift);
}

// BYTES makes the tiles of half a block of codes in bytes, stride apart, with offsets or
// without. Those of 8 bits have no table: 1024+q is exact in fp16, and so is that less 1152.
#define BYTES(NAME, BITS, OFFSETS)                                                                                  \
  static void NAME(uint16_t *restrict tiles, uint32_t stride, const V *w, int half, V values,                      \
                   const union pairs *restrict scales, const union pairs *restrict offsets) {                      \
    V p[32];                                                                                                        \
    rows_of(p, w, BITS, half);                                                                                      \
    UNROLL_HALVES for (int j = 0; j < 32; j++) {                                                                    \
      W r = BITS == 8 ? Q6_Wuh_vzxt_Vub(p[j]) : LOOKUP(p[j], values, 0);                                            \
      V *out = (V *)(tiles + (uint32_t)(j >> 3) * stride) + (j & 7) * 2;                                            \
      UNROLL for (int h = 0; h < 2; h++) {                                                                          \
        V e = h ? HI(r) : LO(r);                                                                                    \
        if (BITS == 8) e = hf_add(Q6_V_vor_VV(e, splat_h(0x6400)), splat_h(0xe480));                                \
        out[h] = fused(e, splat_w(scales->words[h * 32 + j]), OFFSETS ? splat_w(offsets->words[h * 32 + j]) : e, OFFSETS); \
      }                                                                                                             \
    }                                                                                                               \
  }
BYTES(bytes_8, 8, 0)
BYTES(bytes_8_offsets, 8, 1)
BYTES(bytes_4, 4, 0)
BYTES(bytes_4_offsets, 4, 1)

// dequant_bytes makes tiles of codes in bytes, without the second table.
static void dequant_bytes(const struct dequant *d, const V *w) {
  const int shift = d->group == 32 ? 5 : d->group == 64 ? 6 : 7;
  const uint32_t first = (uint32_t)d->strip * (uint32_t)(d->K >> shift);
  const V values = d->bits == 8 ? zero() : LO(Q6_Wuw_vunpack_Vuh(*(const V *)d->values));
  void (*make)(uint16_t *, uint32_t, const V *, int, V, const union pairs *, const union pairs *) =
      d->bits == 8 ? (d->offsets ? bytes_8_offsets : bytes_8) : (d->offsets ? bytes_4_offsets : bytes_4);
  union pairs scales, offsets;
  for (int i = 0, made = -1; i < 2 * d->n; i++) {
    const int group = (2 * d->first + i) * 32 >> shift;
    if (group != made) {
      made = group;
      pairs_of(&scales, d->scales, first + (uint32_t)group, 15);
      if (d->offsets) pairs_of(&offsets, d->offsets, first + (uint32_t)group, 12);
    }
    make(d->tiles + (uint32_t)i * TILE, (uint32_t)d->row * 2 * TILE, w + (uint32_t)(i / 2 * d->bits) * 8, i & 1, values, &scales, &offsets);
  }
}

void dequant(const struct dequant *d) {
  const int flat = d->group == d->K;
  const uint32_t stride = (uint32_t)d->row * 2 * TILE, lines = (uint32_t)d->bits * 8;
  const V *w = (const V *)d->weights + ((uint32_t)d->strip * (uint32_t)(d->K / BLOCK) + (uint32_t)d->first) * lines;
  if (d->bytes) {
    dequant_bytes(d, w);
    return;
  }
  void (*half)(uint16_t *, uint32_t, const V *, int, const V *);
  switch (d->bits) {
  case 1: half = flat ? half_flat_1 : half_1; break;
  case 2: half = flat ? half_flat_2 : half_2; break;
  default: half = flat ? half_flat_4 : half_4; break;
  }
  // Word w of both tables: the value of code w%16 of 16, or w%4 of four, in both halves.
  V v = *(const V *)d->values, lut[32];
  v = Q6_Vw_vadd_VwVw(LO(Q6_Wuw_vunpack_Vuh(v)), Q6_Vw_vasl_VwR(LO(Q6_Wuw_vunpack_Vuh(v)), 16));
  const int period = d->bits == 4 ? 64 : 16; // bytes
  if (d->bits == 1) v = Q6_V_vmux_QVV(Q6_Q_vsetq_R(8), v, zero());
  for (int n = period; n < 128; n *= 2) v = Q6_V_vmux_QVV(Q6_Q_vsetq_R(n), v, Q6_V_vror_VR(v, -n));
  lut[0] = v;
  const int shift = d->group == 32 ? 5 : d->group == 64 ? 6 : 7, groups = d->K >> shift;
  int made = -1;
  for (int i = 0; i < 2 * d->n; i++) {
    int column = 2 * d->first + i, group = flat ? made : column * 32 >> shift;
    if (group != made) {
      uint32_t at = ((uint32_t)d->strip * (uint32_t)groups + (uint32_t)group) * 2;
      const V *sc = (const V *)d->scales + at, *of = d->offsets ? (const V *)d->offsets + at : 0;
      (d->bits == 4 ? fuse4 : fuse2)(lut, sc, of, v);
      made = group;
    }
    half(d->tiles + (uint32_t)i * TILE, stride, w + (uint32_t)(i / 2) * lines, i & 1, lut);
  }
}
