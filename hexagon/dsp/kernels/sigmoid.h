// Powers of e and what is made of them, of 32 lanes: hexagon/ref has each operation.
#pragma once
#include "sf.h"

// exp_minus is e^-|x| = 2^z of z = -|x|·log2(e): 2^k by a series of the rest. Of more than 80 it is that of 80.
INLINE V exp_minus(V x) {
  static const float series[] = {0x1.430912p-13f, 0x1.5d87fep-10f, 0x1.3b2ab6p-7f, 0x1.c6b08ep-5f, 0x1.ebfbep-3f, 0x1.62e43p-1f, 1};
  V a = Q6_Vw_vmin_VwVw(sf_abs(x), splat_f(80));
  V z = sf_mul(a, splat_f(-0x1.715476p0f));
  V k, f = sf_sub(z, whole_part(z, &k));
  V p = splat_f(series[0]);
  for (int i = 1; i < 7; i++) p = sf_add(sf_mul(p, f), splat_f(series[i]));
  return Q6_Vw_vadd_VwVw(p, Q6_Vw_vasl_VwR(k, 23));
}

// inverse is 1/d of d from 1 to 2, by Newton's steps from a line.
INLINE V inverse(V d) {
  V r = sf_sub(splat_f(24.0f / 17), sf_mul(d, splat_f(8.0f / 17)));
  for (int i = 0; i < 3; i++) r = sf_mul(r, sf_sub(splat_f(2), sf_mul(d, r)));
  return r;
}

// sigmoid is 1/(1+e) of e = e^-|x|, and what of it is left of 1 where x < 0.
INLINE V sigmoid(V x) {
  V e = exp_minus(x), r = inverse(sf_add(e, splat_f(1)));
  return Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(zero(), x), sf_mul(e, r), r);
}

// softplus is ln(1+e^x): max(x, 0), and ln(1+e) by the series of ln((1+u)/(1-u)), u = e/(2+e).
INLINE V softplus(V x) {
  static const float series[] = {1.0f / 13, 1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3, 1};
  V e = sf_mul(splat_f(0.5f), exp_minus(x));
  V u = sf_mul(e, inverse(sf_add(e, splat_f(1)))), square = sf_mul(u, u), p = splat_f(series[0]);
  for (int i = 1; i < 7; i++) p = sf_add(sf_mul(p, square), splat_f(series[i]));
  return sf_add(Q6_Vw_vmax_VwVw(x, zero()), sf_mul(sf_add(u, u), p));
}
