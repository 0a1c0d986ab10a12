// float32 of 32 lanes: IEEE, rounded to nearest even, with subnormals; what is too large
// becomes infinite, and the bits of operands that are infinite or NaN have no meaning. In the
// emulator by integer instructions; on a chip (LUTRA_ARCH) by qfloat, which below V79 rounds otherwise and has neither
// infinities nor NaNs: see qf.h. No multiplication is fused with an addition.
#pragma once
#include "hf.h"

INLINE uint32_t bits_of(float f) {
  uint32_t u;
  __builtin_memcpy(&u, &f, 4);
  return u;
}
INLINE float float_of(uint32_t u) {
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
INLINE V splat_f(float f) { return splat_w(bits_of(f)); }
INLINE float first_f(V v) { return float_of((uint32_t)Q6_R_vextract_VR(v, 0)); }
INLINE V sf_sign(V a) { return Q6_V_vand_VV(a, splat_w(0x80000000)); }
INLINE V sf_abs(V a) { return Q6_V_vand_VV(a, splat_w(0x7fffffff)); }

// sf_round rounds magnitudes p (words below 2^31, the last bit set if something is behind
// it), whose bit 30 has the biased exponent e, to float32 bits.
INLINE V sf_round(V p, V e) {
  const V one = splat_w(1);
  V s = Q6_Vw_vsub_VwVw(Q6_Vuw_vcl0_Vuw(p), one);
  p = Q6_Vw_vasl_VwVw(p, s);
  e = Q6_Vw_vsub_VwVw(e, s);
  V under = Q6_Vw_vmax_VwVw(Q6_Vw_vsub_VwVw(one, e), zero()); // places below the smallest normal
  V sh = Q6_Vw_vmin_VwVw(Q6_Vw_vadd_VwVw(under, splat_w(7)), splat_w(31));
  V mant = Q6_Vw_vlsr_VwVw(p, sh);
  V rest = Q6_Vw_vsub_VwVw(p, Q6_Vw_vasl_VwVw(mant, sh));
  V half = Q6_Vw_vasl_VwVw(one, Q6_Vw_vsub_VwVw(sh, one));
  Q up = Q6_Q_vcmp_gt_VwVw(Q6_Vw_vadd_VwVw(rest, Q6_V_vand_VV(mant, one)), half);
  mant = Q6_Vw_condacc_QVwVw(up, mant, one);
  V from = Q6_Vw_vsub_VwVw(Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(e, one), splat_w(255)), one);
  V r = Q6_Vw_vmin_VwVw(Q6_Vw_vadd_VwVw(Q6_Vw_vasl_VwR(from, 23), mant), splat_w(0x7f800000));
  r = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(splat_w((uint32_t)-23), e), zero(), r);
  return Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(p, zero()), zero(), r);
}

// sf_split takes magnitudes apart: 24 bits, and the exponent, 1 of subnormals.
INLINE void sf_split(V a, V *mant, V *exp) {
  V e = Q6_V_vand_VV(Q6_Vuw_vlsr_VuwR(a, 23), splat_w(255));
  V m = Q6_V_vand_VV(a, splat_w(0x7fffff));
  *mant = Q6_Vw_condacc_QVwVw(Q6_Q_vcmp_gt_VwVw(e, zero()), m, splat_w(0x800000));
  *exp = Q6_Vw_vmax_VwVw(e, splat_w(1));
}

// sf_of_int is float32 of int32.
INLINE V sf_of_int(V n) { return Q6_V_vor_VV(sf_round(Q6_Vw_vabs_Vw_sat(n), splat_w(157)), sf_sign(n)); }

// sf_of_hf is float32 of the fp16 in the low halves of words; hf_of_sf makes such fp16.
INLINE V sf_of_hf(V h) {
  V e = Q6_V_vand_VV(Q6_Vuw_vlsr_VuwR(h, 10), splat_w(31)), m = Q6_V_vand_VV(h, splat_w(0x3ff));
  m = Q6_Vw_condacc_QVwVw(Q6_Q_vcmp_gt_VwVw(e, zero()), m, splat_w(0x400));
  V r = sf_round(m, Q6_Vw_vadd_VwVw(Q6_Vw_vmax_VwVw(e, splat_w(1)), splat_w(132)));
  return Q6_V_vor_VV(r, sf_sign(Q6_Vw_vasl_VwR(h, 16)));
}
INLINE V hf_of_sf(V a) {
  V m, e;
  sf_split(a, &m, &e);
  V r = hf_round(m, Q6_Vw_vsub_VwVw(e, splat_w(104)));
  return Q6_V_vor_VV(r, Q6_Vuw_vlsr_VuwR(sf_sign(a), 16));
}

#if defined(LUTRA_ARCH) && LUTRA_ARCH >= 79
CONVERTED(sf_mul, "vmpy", "qf32", "sf")
CONVERTED(sf_add, "vadd", "qf32", "sf")
#elif defined(LUTRA_ARCH)
INLINE V sf_mul(V a, V b) { return sf_of_qf32(qf32_mul_sf(a, b)); }
INLINE V sf_add(V a, V b) { return sf_of_qf32(qf32_add_sf(a, b)); }
#else
// normal moves the mantissa's top bit to bit 30.
INLINE void sf_normal(V a, V *mant, V *exp) {
  sf_split(a, mant, exp);
  V lz = Q6_Vuw_vcl0_Vuw(*mant);
  *mant = Q6_Vw_vasl_VwVw(*mant, Q6_Vw_vsub_VwVw(lz, splat_w(1)));
  *exp = Q6_Vw_vsub_VwVw(*exp, Q6_Vw_vsub_VwVw(lz, splat_w(8)));
}

INLINE V sf_mul(V a, V b) {
  V ma, ea, mb, eb;
  sf_normal(a, &ma, &ea);
  sf_normal(b, &mb, &eb);
  W p = Q6_W_vmpyoacc_WVwVh(Q6_W_vmpye_VwVuh(ma, mb), ma, mb); // 64 bits
  V behind = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(LO(p), zero()), zero(), splat_w(1));
  V r = sf_round(Q6_V_vor_VV(HI(p), behind), Q6_Vw_vadd_VwVw(Q6_Vw_vadd_VwVw(ea, eb), splat_w((uint32_t)-125)));
  return Q6_V_vor_VV(r, sf_sign(Q6_V_vxor_VV(a, b)));
}

// sf_behind is a signed mantissa with 6 more places, d places behind the other's; the last
// bit is set if some were lost.
INLINE V sf_behind(V a, V m, V d) {
  V sign = Q6_Vw_vasr_VwR(a, 31);
  m = Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(Q6_V_vxor_VV(m, sign), sign), 6);
  d = Q6_Vw_vmin_VwVw(d, splat_w(31));
  V r = Q6_Vw_vasr_VwVw(m, d);
  Q exact = Q6_Q_vcmp_eq_VwVw(Q6_Vw_vasl_VwVw(r, d), m);
  return Q6_V_vor_VV(r, Q6_V_vmux_QVV(exact, zero(), splat_w(1)));
}

INLINE V sf_add(V a, V b) {
  V ma, ea, mb, eb;
  sf_split(a, &ma, &ea);
  sf_split(b, &mb, &eb);
  V e = Q6_Vw_vmax_VwVw(ea, eb);
  V sum = Q6_Vw_vadd_VwVw(sf_behind(a, ma, Q6_Vw_vsub_VwVw(e, ea)), sf_behind(b, mb, Q6_Vw_vsub_VwVw(e, eb)));
  V r = sf_round(Q6_Vw_vabs_Vw(sum), Q6_Vw_vadd_VwVw(e, splat_w(1)));
  V sign = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(sum, zero()), Q6_V_vand_VV(a, b), sum); // of two zeros -0 if both are
  return Q6_V_vor_VV(r, sf_sign(sign));
}
#endif
INLINE V sf_sub(V a, V b) { return sf_add(a, Q6_V_vxor_VV(b, splat_w(0x80000000))); }

// round_to_int rounds numbers below 2^22 to integers, the nearest even. Below V79 a float addition makes integers that are
// wrong by one.
#if defined(LUTRA_ARCH) && LUTRA_ARCH < 79
INLINE V round_to_int(V x) {
  V m, e, sign = Q6_Vw_vasr_VwR(x, 31);
  sf_split(x, &m, &e);
  V sh = Q6_Vw_vmin_VwVw(Q6_Vw_vsub_VwVw(splat_w(150), e), splat_w(31)); // at least 1
  V n = Q6_Vw_vlsr_VwVw(m, sh), rest = Q6_Vw_vsub_VwVw(m, Q6_Vw_vasl_VwVw(n, sh));
  V half = Q6_Vw_vasl_VwVw(splat_w(1), Q6_Vw_vsub_VwVw(sh, splat_w(1)));
  Q up = Q6_Q_vcmp_gt_VwVw(Q6_Vw_vadd_VwVw(rest, Q6_V_vand_VV(n, splat_w(1))), half);
  n = Q6_Vw_condacc_QVwVw(up, n, splat_w(1));
  return Q6_Vw_vsub_VwVw(Q6_V_vxor_VV(n, sign), sign);
}
INLINE V whole_part(V x, V *k) { // the same as an integer and as a float
  *k = round_to_int(x);
  return sf_of_int(*k);
}
#else
INLINE V round_to_int(V x) { return Q6_Vw_vsub_VwVw(sf_add(x, splat_f(0x1.8p23f)), splat_f(0x1.8p23f)); }
INLINE V whole_part(V x, V *k) {
  V up = sf_add(x, splat_f(0x1.8p23f));
  *k = Q6_Vw_vsub_VwVw(up, splat_f(0x1.8p23f));
  return sf_sub(up, splat_f(0x1.8p23f));
}
#endif

// sf_sum is the sum of all lanes, in each of them: ref.sumOfLanes has the order.
INLINE V sf_sum(V a) {
  UNROLL for (int s = 64; s >= 4; s /= 2) a = sf_add(a, Q6_V_vror_VR(a, s));
  return a;
}

// Of one number, by the scalar unit, whose arithmetic is IEEE's: Newton's steps from the bits
// of a first guess, each operation rounded.
INLINE float reciprocal(float d) {
  float r = float_of(0x7ef311c7u - bits_of(d));
  for (int i = 0; i < 4; i++) r = r * (2 - d * r);
  return r;
}
INLINE float reciprocal_root(float d) {
  const float half = 0.5f * d;
  float r = float_of(0x5f3759dfu - (bits_of(d) >> 1));
  for (int i = 0; i < 4; i++) r = r * (1.5f - half * (r * r));
  return r;
}
