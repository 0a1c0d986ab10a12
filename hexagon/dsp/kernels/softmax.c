// Softmax of tiles of scores, exponentials gathered from a table (TTS §5.2.1).
#include "hf.h"
#include "hvx.h"
#include "kernels.h"
#include "machine.h"

// offsets are where the table has the numbers for fp16 bits: without the sign, in bytes.
INLINE V offsets(V bits) { return Q6_Vh_vasl_VhR(bits, 1); }

// q24 is the fp16 in words, all in [0, 1], in units of 2^-24.
INLINE V q24(V h) {
  V e = Q6_Vuw_vlsr_VuwR(h, 10), m = Q6_V_vand_VV(h, splat_w(0x3ff));
  m = Q6_Vw_condacc_QVwVw(Q6_Q_vcmp_gt_VwVw(e, zero()), m, splat_w(0x400));
  return Q6_Vw_vasl_VwVw(m, Q6_Vw_vmax_VwVw(Q6_Vw_vsub_VwVw(e, splat_w(1)), zero()));
}

// Two rows are the even and the odd halfwords of vectors that stand a tile apart.
struct sums {
  V even, odd; // words; below 2^32 for 127 tiles
};

// add_sums adds the words of each row to its total.
INLINE void add_sums(uint64_t *even, uint64_t *odd, struct sums s) {
  const V low = splat_w(0xffff);
  W l = exchange(Q6_V_vand_VV(s.even, low), Q6_V_vand_VV(s.odd, low), 4);
  W h = exchange(Q6_Vuw_vlsr_VuwR(s.even, 16), Q6_Vuw_vlsr_VuwR(s.odd, 16), 4);
  W p = exchange(Q6_Vw_vadd_VwVw(LO(l), HI(l)), Q6_Vw_vadd_VwVw(LO(h), HI(h)), 8);
  V t = Q6_Vw_vadd_VwVw(LO(p), HI(p));
  UNROLL for (int r = 16; r < 128; r *= 2) t = Q6_Vw_vadd_VwVw(t, Q6_V_vror_VR(t, r));
  // Words 0..3: low parts of even, odd; high parts of even, odd.
  *even += (uint32_t)Q6_R_vextract_VR(t, 0) + ((uint64_t)(uint32_t)Q6_R_vextract_VR(t, 8) << 16);
  *odd += (uint32_t)Q6_R_vextract_VR(t, 4) + ((uint64_t)(uint32_t)Q6_R_vextract_VR(t, 12) << 16);
}

static const uint16_t columns[64] ALIGNED = {
#define C(n) n, n
#define C8(n) C(n), C(n + 1), C(n + 2), C(n + 3), C(n + 4), C(n + 5), C(n + 6), C(n + 7)
    C8(0), C8(8), C8(16), C8(24)};

static const uint16_t diagonal[64] ALIGNED = {0xffff, 0, 0, 0xffff};

// within says which of the tile's lanes are among their row's first valid keys.
INLINE Q within(const uint32_t *valid, int tile) {
  uint32_t limit = 0;
  for (int i = 0; i < 2; i++) {
    uint32_t n = valid[i], from = (uint32_t)tile * 32;
    limit |= (n <= from ? 0 : n - from < 32 ? n - from : 32) << (16 * i);
  }
  return Q6_Q_vcmp_gt_VhVh(splat_w(limit), *(const V *)columns);
}

// Two rows between their maximum and their sums.
struct pair {
  V max;
  V *s, *diag;
  struct softmax_state *st;
  int row, whole; // whole: tiles without a lane to leave out
};

// exponential has a tile's scores of two rows replaced by their exponentials, when they come.
INLINE void exponential(const struct pair *p, int t, const uint16_t *table) {
  V *s = p->s + t * 16;
  gather(s, table, offsets(hf_add(*s, hf_neg(p->max))));
}

// begin finds the maximum of two rows.
static void begin(struct pair *p, const uint16_t *table, int keys) {
  V *const s = p->s;
  const uint32_t valid[2] = {p->st[0].valid, p->st[1].valid};
  const uint32_t all = (uint32_t)keys * 32, least = valid[0] < valid[1] ? valid[0] : valid[1];
  const int whole = (int)((least < all ? least : all) / 32);
  const V before = splat_w((p->st[0].max & 0xffff) | p->st[1].max << 16);

  V mx = hf_order(before);
  for (int t = 0; t < whole; t++) mx = Q6_Vh_vmax_VhVh(mx, hf_order(s[t * 16]));
  for (int t = whole; t < keys; t++)
    mx = Q6_V_vmux_QVV(within(valid, t), Q6_Vh_vmax_VhVh(mx, hf_order(s[t * 16])), mx);
  for (int r = 4; r < 128; r *= 2) mx = Q6_Vh_vmax_VhVh(mx, Q6_V_vror_VR(mx, r));
  p->max = hf_order(mx), p->whole = whole;
  gather(p->diag, table, offsets(hf_add(before, hf_neg(p->max))));
}

// end sums two rows' exponentials, and gathers those of the next two, if any, tile by tile.
INLINE void end(const struct pair *p, const struct pair *next, const uint16_t *table, int keys) {
  V *const s = p->s;
  const uint32_t valid[2] = {p->st[0].valid, p->st[1].valid};
  const V decay = gathered(p->diag);
  *p->diag = Q6_V_vand_VV(decay, Q6_V_vror_VR(*(const V *)diagonal, -4 * p->row));

  uint64_t even = 0, odd = 0;
  struct sums sum = {zero(), zero()};
  for (int t = 0; t < keys; t++) {
    if (next) exponential(next, t, table);
    V e = gathered(s + t * 16);
    if (t >= p->whole) {
      e = Q6_V_vmux_QVV(within(valid, t), e, zero());
      s[t * 16] = e;
    }
    W w = Q6_Wuw_vzxt_Vuh(e);
    sum.even = Q6_Vw_vadd_VwVw(sum.even, q24(LO(w)));
    sum.odd = Q6_Vw_vadd_VwVw(sum.odd, q24(HI(w)));
    if (t % 64 == 63) {
      add_sums(&even, &odd, sum);
      sum = (struct sums){zero(), zero()};
    }
  }
  add_sums(&even, &odd, sum);
  const uint32_t m = (uint32_t)Q6_R_vextract_VR(p->max, 0), d = (uint32_t)Q6_R_vextract_VR(decay, 0);
  p->st[0] = (struct softmax_state){m & 0xffff, valid[0], d & 0xffff, (uint32_t)even, (uint32_t)(even >> 32), 0};
  p->st[1] = (struct softmax_state){m >> 16, valid[1], d >> 16, (uint32_t)odd, (uint32_t)(odd >> 32), 0};
}

// softmax gathers two rows ahead: their gathers' latency passes while the sums of those before
// are made.
void softmax(uint16_t *scores, const uint16_t *table, struct softmax_state *states, uint16_t *diag, int first, int last, int keys) {
  struct pair now = {0};
  for (int i = first; i < last; i++) {
    struct pair next = {.s = (V *)scores + i / 16 * keys * 16 + i % 16, .diag = (V *)diag + i, .st = states + 2 * i, .row = i % 16 * 2};
    begin(&next, table, keys);
    if (i > first)
      end(&now, &next, table, keys);
    else
      for (int t = 0; t < keys; t++) exponential(&next, t, table);
    now = next;
  }
  end(&now, 0, table, keys);
}
