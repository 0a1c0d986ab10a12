// qfloat's instructions of V73 and V75, which no qemu has, a lane at a time. The rules are those of Qualcomm's qemu
// (quic/qemu, mmvec_qfloat.c); hexagon/device/qemu has them once more in Go, and a test that both give the same bits.
#pragma once
#include "../kernels/hvx.h"

// A number is (units + what is behind) * 2^(exp-23), of which the last bit of units, worth 2^-BEHIND, is set if there is more.
enum { BEHIND = 8 };
struct unrounded {
  int64_t units; // of 2^-BEHIND
  int exp;
};

INLINE int log2_of(int64_t magnitude) { return 63 - __builtin_clzll((uint64_t)magnitude); }
INLINE int64_t jammed(int64_t v, int places) { // v / 2^places, rounded down, with its last bit set where that is not exact
  if (places > 62) places = 62;
  return v >> places | ((v & ((1ll << places) - 1)) != 0);
}

// A significand is in units of 2^-23; infinities and NaNs are numbers of the largest exponent.
struct parsed {
  int64_t sig;
  int exp;
};
INLINE struct parsed parsed_sf(uint32_t bits) {
  const int e = bits >> 23 & 255, m = bits & 0x7fffff;
  return (struct parsed){(bits >> 31 ? -1ll : 1ll) * (e ? m | 0x800000 : m), (e ? e : 1) - 127};
}
INLINE struct parsed parsed_hf(uint32_t bits) {
  const int e = bits >> 10 & 31, m = bits & 0x3ff;
  return (struct parsed){(bits >> 15 & 1 ? -1ll : 1ll) * ((e ? m | 0x400 : m) << 13), (e ? e : 1) - 15};
}
INLINE struct parsed parsed_qf32(uint32_t bits) { return (struct parsed){(int32_t)bits >> 7 | 1, (int)(bits & 255) - 127}; }

// qf32_of rounds to an odd significand, of 25 bits with the sign: to the nearest of 1 and 3 units in four, or to 2 by
// another exponent.
INLINE uint32_t qf32_of(struct unrounded u) {
  const int64_t two = 2ll << (23 + BEHIND), quarter = 4ll << BEHIND;
  int64_t r = u.units;
  int exp = u.exp, step = 0;
  if (!r) return 0;
  const int over = r >= two || r < -two;
  if ((over && exp >= 128) || exp > 128) return (r < 0 ? 0x80000000u : 0x7fffff00u) | 255;
  if (exp < -128) return r < 0 ? 0xffffff00u : 0;
  const int halved = over || exp == -128;
  if (halved) r = jammed(r, 1), exp++;
  const int64_t down = r & -quarter, rest = r - down;
  if (halved || exp == 128)
    r = (down >> BEHIND) + (rest <= quarter / 2 ? 1 : 3);
  else if (rest <= (3ll << BEHIND) / 2)
    r = (down >> BEHIND) + 1;
  else if (rest <= (5ll << BEHIND) / 2)
    r = ((down >> BEHIND) + 2) / 2, step = 1;
  else
    r = (down >> BEHIND) + 3;
  return (uint32_t)(r >> 1) << 8 | (uint32_t)(exp + step + 127);
}
INLINE uint32_t qf32_negative(uint32_t q) { return q ^ 0xffffff00u; }

INLINE uint32_t qf32_product(struct parsed a, struct parsed b) {
  const int negative = (a.sig < 0) != (b.sig < 0);
  const int64_t p = (a.sig < 0 ? -a.sig : a.sig) * (b.sig < 0 ? -b.sig : b.sig);
  const uint32_t q = qf32_of((struct unrounded){jammed(p, 23 - BEHIND), a.exp + b.exp});
  return negative ? qf32_negative(q) : q;
}

// top is a number's exponent were it normal, but at least another's.
INLINE int top(struct parsed a, int least) {
  const int e = a.sig ? a.exp + log2_of(a.sig < 0 ? -a.sig : a.sig) - 23 : a.exp - 24;
  return e < least ? least : e;
}
INLINE int64_t placed(struct parsed a, int exp) {
  const int up = a.exp - exp + BEHIND;
  return up >= 0 ? a.sig << up : jammed(a.sig, -up);
}
INLINE uint32_t qf32_sum(struct parsed a, struct parsed b) {
  const int exp = a.exp > b.exp ? top(a, b.exp) : top(b, a.exp);
  return qf32_of((struct unrounded){placed(a, exp) + placed(b, exp), exp}); // the larger has nothing behind
}

// ieee rounds to nearest even: bits of a significand of so many bits, and exponents of so many.
INLINE uint32_t ieee(uint32_t q, int places, int exponents) {
  const struct parsed p = parsed_qf32(q);
  const uint64_t m = (uint64_t)(p.sig < 0 ? -p.sig : p.sig);
  const int bias = (1 << (exponents - 1)) - 1, most = 1 << exponents;
  int e = p.exp + log2_of((int64_t)m) - 23 + bias; // biased
  int drop = log2_of((int64_t)m) - places;         // bits that do not fit
  if (e < 1) drop += 1 - e, e = 1;
  uint64_t kept;
  if (drop <= 0) kept = m << -drop;
  else if (drop > 40) kept = 0;
  else {
    const uint64_t rest = m & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    kept = m >> drop;
    kept += rest > half || (rest == half && (kept & 1));
  }
  uint64_t bits = ((uint64_t)(e - 1) << places) + kept;
  if (bits >= (uint64_t)most << places) bits = ((uint64_t)most << places) - 1;
  return (uint32_t)bits | (p.sig < 0 ? 1u << (places + exponents) : 0);
}

typedef uint32_t words_of_vector[32] ALIGNED;
typedef uint16_t halves_of_vector[64] ALIGNED;
#define LANES(n, result) \
  for (int i = 0; i < n; i++) r[i] = result;
__attribute__((noinline, unused)) static V qf32_mul_sf(V a, V b) {
  words_of_vector x, y, r;
  *(V *)x = a, *(V *)y = b;
  LANES(32, qf32_product(parsed_sf(x[i]), parsed_sf(y[i])))
  return *(const volatile V *)r;
}
__attribute__((noinline, unused)) static V qf32_add_sf(V a, V b) {
  words_of_vector x, y, r;
  *(V *)x = a, *(V *)y = b;
  for (int i = 0; i < 32; i++) {
    const struct parsed p = parsed_sf(x[i]), q = parsed_sf(y[i]);
    const int both = x[i] >> 31 && y[i] >> 31; // of two negative numbers the magnitudes are added
    const uint32_t sum = both ? qf32_sum((struct parsed){-p.sig, p.exp}, (struct parsed){-q.sig, q.exp}) : qf32_sum(p, q);
    r[i] = both ? qf32_negative(sum) : sum;
  }
  return *(const volatile V *)r;
}
__attribute__((noinline, unused)) static V qf32_add(V a, V b) {
  words_of_vector x, y, r;
  *(V *)x = a, *(V *)y = b;
  LANES(32, qf32_sum(parsed_qf32(x[i]), parsed_qf32(y[i])))
  return *(const volatile V *)r;
}
__attribute__((noinline, unused)) static W qf32_mul_hf(V a, V b) {
  halves_of_vector x, y;
  words_of_vector even, odd;
  *(V *)x = a, *(V *)y = b;
  for (int i = 0; i < 64; i++) (i & 1 ? odd : even)[i / 2] = qf32_product(parsed_hf(x[i]), parsed_hf(y[i]));
  return Q6_W_vcombine_VV(*(const volatile V *)odd, *(const volatile V *)even);
}
__attribute__((noinline, unused)) static V sf_of_qf32(V a) {
  words_of_vector x, r;
  *(V *)x = a;
  LANES(32, ieee(x[i], 23, 8))
  return *(const volatile V *)r;
}
__attribute__((noinline, unused)) static V hf_of_qf32(W a) {
  words_of_vector even, odd;
  halves_of_vector r;
  *(V *)even = LO(a), *(V *)odd = HI(a);
  LANES(64, (uint16_t)ieee((i & 1 ? odd : even)[i / 2], 10, 5))
  return *(const volatile V *)r;
}
