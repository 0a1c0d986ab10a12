// Lookups and their sums: VLUT16 and VLUT32 (T-MAN, Table 1). A line holds one index a
// byte for VLUT32, and two for VLUT16.
#include "ablation.h"

void sum_vlut16_h(int32_t *sums, const uint8_t *lines, int n, const uint16_t *tables) {
  const V *w = (const V *)lines, t0 = ((const V *)tables)[0], t1 = ((const V *)tables)[1];
  W a = Q6_W_vcombine_VV(zero(), zero()), b = a;
  for (int i = 0; i < n; i++) {
    V q = *w++;
    W x = LOOKUP(q, t0, 0), y = LOOKUP(high_nibbles(q), t1, 0);
    a = Q6_Ww_vaddacc_WwVhVh(a, LO(x), LO(y));
    b = Q6_Ww_vaddacc_WwVhVh(b, HI(x), HI(y));
  }
  V *out = (V *)sums;
  out[0] = LO(a), out[1] = HI(a), out[2] = LO(b), out[3] = HI(b);
}

void sum_vlut16_b(int16_t *sums, const uint8_t *lines, int n, const uint16_t *tables) {
  const V *w = (const V *)lines, t0 = ((const V *)tables)[0], t1 = ((const V *)tables)[1];
  W a = Q6_W_vcombine_VV(zero(), zero()), b = a;
  for (int i = 0; i < n; i++) {
    V q = *w++;
    W x = LOOKUP(q, t0, 0), y = LOOKUP(high_nibbles(q), t1, 0);
    a = Q6_Wh_vmpyacc_WhVubRb(a, LO(x), 0x01010101), b = Q6_Wh_vmpyacc_WhVubRb(b, HI(x), 0x01010101);
    a = Q6_Wh_vmpyacc_WhVubRb(a, LO(y), 0x01010101), b = Q6_Wh_vmpyacc_WhVubRb(b, HI(y), 0x01010101);
  }
  V *out = (V *)sums;
  out[0] = LO(a), out[1] = HI(a), out[2] = LO(b), out[3] = HI(b);
}

// A vector holds four tables of 32 bytes, interleaved as those of 16 halfwords are.
#define LOOKUP32(bytes, table, sel) Q6_Vb_vlut32_VbVbR_nomatch(bytes, table, sel)

void sum_vlut32_h(int32_t *sums, const uint8_t *lines, int n, const uint8_t *tables) {
  const V *w = (const V *)lines, t = *(const V *)tables;
  W a = Q6_W_vcombine_VV(zero(), zero()), b = a;
  for (int i = 0; i < n; i += 2) {
    V q = *w++, r = *w++;
    // Low and high bytes of the entries are tables of their own.
    W x = Q6_W_vshuff_VVR(LOOKUP32(q, t, 1), LOOKUP32(q, t, 0), -1), y = Q6_W_vshuff_VVR(LOOKUP32(r, t, 3), LOOKUP32(r, t, 2), -1);
    a = Q6_Ww_vaddacc_WwVhVh(a, LO(x), LO(y));
    b = Q6_Ww_vaddacc_WwVhVh(b, HI(x), HI(y));
  }
  V *out = (V *)sums;
  out[0] = LO(a), out[1] = HI(a), out[2] = LO(b), out[3] = HI(b);
}

void sum_vlut32_b(int16_t *sums, const uint8_t *lines, int n, const uint8_t *tables) {
  const V *w = (const V *)lines, t = *(const V *)tables;
  W a = Q6_W_vcombine_VV(zero(), zero());
  for (int i = 0; i < n; i++) a = Q6_Wh_vmpyacc_WhVubRb(a, LOOKUP32(*w++, t, 0), 0x01010101);
  V *out = (V *)sums;
  out[0] = LO(a), out[1] = HI(a);
}
