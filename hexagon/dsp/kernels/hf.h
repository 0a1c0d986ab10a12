// fp16 of 64 lanes. In the emulator IEEE binary16 by integer instructions, rounded to
// nearest even, with subnormals; what is too large becomes 65504. On a chip (LUTRA_ARCH) by qfloat: of V79 the same, but
// for infinities of what is too large; below it by way of qf32, whose ties may round up.
#pragma once
#include "hvx.h"
#include "qf.h"

// hf_round rounds magnitudes p (words below 2^31), of value p * 2^(e-46), to fp16 bits.
INLINE V hf_round(V p, V e) {
  const V one = splat_w(1);
  V lz = Q6_Vuw_vcl0_Vuw(p);
  p = Q6_Vw_vasl_VwVw(p, Q6_Vw_vsub_VwVw(lz, one)); // top bit 30
  e = Q6_Vw_vsub_VwVw(e, lz);
  V under = Q6_Vw_vmax_VwVw(Q6_Vw_vsub_VwVw(one, e), zero()); // places below the smallest normal
  V sh = Q6_Vw_vmin_VwVw(Q6_Vw_vadd_VwVw(under, splat_w(20)), splat_w(31));
  V mant = Q6_Vw_vlsr_VwVw(p, sh);
  V rest = Q6_Vw_vsub_VwVw(p, Q6_Vw_vasl_VwVw(mant, sh));
  V half = Q6_Vw_vasl_VwVw(one, Q6_Vw_vsub_VwVw(sh, one));
  // Up when the rest is above one half, or is one half and mant is odd.
  Q up = Q6_Q_vcmp_gt_VwVw(Q6_Vw_vadd_VwVw(rest, Q6_V_vand_VV(mant, one)), half);
  mant = Q6_Vw_condacc_QVwVw(up, mant, one);
  V base = Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(Q6_Vw_vmax_VwVw(e, one), one), 10);
  V r = Q6_Vw_vmin_VwVw(Q6_Vw_vadd_VwVw(base, mant), splat_w(0x7bff));
  r = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(splat_w((uint32_t)-10), e), zero(), r);
  return Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(p, zero()), zero(), r);
}

// hf_of_int is fp16(n * 2^-shift) of int16 n.
INLINE V hf_of_int(V n, int shift) {
  W w = Q6_Ww_vsxt_Vh(n);
  V e = splat_w((uint32_t)(46 - shift));
  V r = Q6_Vh_vshuffe_VhVh(hf_round(Q6_Vw_vabs_Vw(HI(w)), e), hf_round(Q6_Vw_vabs_Vw(LO(w)), e));
  return Q6_V_vor_VV(r, Q6_V_vand_VV(n, splat_h(0x8000)));
}

// Loops of fp16 arithmetic are unrolled where that is instructions, not functions.
#if defined(LUTRA_STANDIN) || (defined(LUTRA_ARCH) && !defined(LUTRA_EMULATED))
#define UNROLL_HALVES UNROLL
#else
#define UNROLL_HALVES
#endif

#if defined(LUTRA_STANDIN) && !defined(LUTRA_ARCH) // wrong numbers, but as many instructions as qfloat: see ablation
INLINE V hf_mul(V a, V b) { return Q6_Vh_vavg_VhVh(Q6_Vh_vmpyi_VhVh(a, b), b); }
INLINE V hf_add(V a, V b) { return Q6_Vh_vavg_VhVh(Q6_Vh_vadd_VhVh(a, b), b); }
#elif defined(LUTRA_ARCH) && LUTRA_ARCH < 79
INLINE V hf_mul(V a, V b) { return hf_of_qf32(qf32_mul_hf(a, b)); }
INLINE V hf_add(V a, V b) { // a sum of qf16 that cancels would be wrong by a unit of its operands' last place
  const W x = qf32_mul_hf(a, splat_h(0x3c00)), y = qf32_mul_hf(b, splat_h(0x3c00));
  return hf_of_qf32(Q6_W_vcombine_VV(qf32_add(HI(x), HI(y)), qf32_add(LO(x), LO(y))));
}
#elif defined(LUTRA_ARCH)
CONVERTED(hf_mul, "vmpy", "qf16", "hf")
CONVERTED(hf_add, "vadd", "qf16", "hf")
#else
INLINE void hf_split(V a, V *mant, V *exp) {
  V e = Q6_V_vand_VV(Q6_Vuh_vlsr_VuhR(a, 10), splat_h(31));
  V m = Q6_V_vand_VV(a, splat_h(0x3ff));
  *mant = Q6_Vh_condacc_QVhVh(Q6_Q_vcmp_gt_VhVh(e, zero()), m, splat_h(0x400));
  *exp = Q6_Vh_vmax_VhVh(e, splat_h(1));
}

INLINE V hf_mul(V a, V b) {
  V ma, ea, mb, eb;
  hf_split(a, &ma, &ea);
  hf_split(b, &mb, &eb);
  W p = Q6_Wuw_vmpy_VuhVuh(ma, mb); // even lanes in the low vector, odd ones in the high
  W e = Q6_Ww_vadd_VhVh(Q6_Vh_vadd_VhVh(ea, eb), splat_h((uint16_t)-4));
  V r = Q6_Vh_vshuffe_VhVh(hf_round(HI(p), HI(e)), hf_round(LO(p), LO(e)));
  return Q6_V_vor_VV(r, Q6_V_vand_VV(Q6_V_vxor_VV(a, b), splat_h(0x8000)));
}

// hf_add_w adds words: signed mantissas and how far each is behind the larger exponent e.
// 16 guard bits: a longer shift leaves less than a quarter of the last place of an
// 11-bit operand, which cannot change the rounding.
INLINE V hf_add_w(V ma, V behind_a, V mb, V behind_b, V e, V *sum) {
  ma = Q6_Vw_vasr_VwVw(Q6_Vw_vasl_VwR(ma, 16), behind_a);
  mb = Q6_Vw_vasr_VwVw(Q6_Vw_vasl_VwR(mb, 16), behind_b);
  *sum = Q6_Vw_vadd_VwVw(ma, mb);
  return hf_round(Q6_Vw_vabs_Vw(*sum), Q6_Vw_vadd_VwVw(e, splat_w(5)));
}

// hf_add adds; a sum of zeros is +0.
INLINE V hf_add(V a, V b) {
  V ma, ea, mb, eb, s0, s1, sa = Q6_Vh_vasr_VhR(a, 15), sb = Q6_Vh_vasr_VhR(b, 15);
  hf_split(a, &ma, &ea);
  hf_split(b, &mb, &eb);
  W wa = Q6_Ww_vsxt_Vh(Q6_Vh_vsub_VhVh(Q6_V_vxor_VV(ma, sa), sa)), wb = Q6_Ww_vsxt_Vh(Q6_Vh_vsub_VhVh(Q6_V_vxor_VV(mb, sb), sb));
  V e = Q6_Vh_vmax_VhVh(ea, eb);
  W we = Q6_Wuw_vzxt_Vuh(e), da = Q6_Wuw_vzxt_Vuh(Q6_Vh_vsub_VhVh(e, ea)), db = Q6_Wuw_vzxt_Vuh(Q6_Vh_vsub_VhVh(e, eb));
  V r0 = hf_add_w(LO(wa), LO(da), LO(wb), LO(db), LO(we), &s0);
  V r1 = hf_add_w(HI(wa), HI(da), HI(wb), HI(db), HI(we), &s1);
  return Q6_V_vor_VV(Q6_Vh_vshuffe_VhVh(r1, r0), Q6_V_vand_VV(Q6_Vh_vshuffo_VhVh(s1, s0), splat_h(0x8000)));
}
#endif

// hf_order maps fp16 bits to int16 in the numbers' order, and back.
INLINE V hf_order(V x) { return Q6_V_vxor_VV(x, Q6_V_vand_VV(Q6_Vh_vasr_VhR(x, 15), splat_h(0x7fff))); }
INLINE V hf_neg(V a) { return Q6_V_vxor_VV(a, splat_h(0x8000)); }
