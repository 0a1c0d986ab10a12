// Exponentials by polynomials (TTS, Figure 14), and by the table.
#include "ablation.h"

// Stand-ins of the float instructions, on words and halfwords. vavg keeps the compiler
// from making one instruction of a multiplication and an addition.
INLINE V mul_w(V a, V b) { return Q6_Vw_vmpyie_VwVuh(a, b); }
INLINE V add_w(V a, V b) { return Q6_Vw_vavg_VwVw(a, b); }
INLINE V mul_h(V a, V b) { return Q6_Vh_vmpyi_VhVh(a, b); }
INLINE V add_h(V a, V b) { return Q6_Vh_vavg_VhVh(a, b); }

// The constants of 2^f, whose values the count does not depend on.
#define C(n) splat_w(0x3f800000u + 0x1235u * (n))
#define H(n) splat_h(0x3c00u + 0x123u * (n))

// exp_w is 2^x of 32 floats: k = floor(x), a polynomial of degree 6 of x - k, and k
// added to the exponent.
INLINE V exp_w(V x) {
  V k = Q6_Vw_vasr_VwR(add_w(x, C(1)), 8);            // round to an integer
  V f = add_w(x, Q6_Vw_vasl_VwR(k, 8));               // x - k: convert back, subtract
  V r = C(2);
  UNROLL for (int i = 0; i < 6; i++) r = add_w(mul_w(r, f), C(3 + i));
  r = Q6_Vw_vabs_Vw(r);                               // qf32 to IEEE
  return Q6_Vw_vadd_VwVw(r, Q6_Vw_vasl_VwR(k, 23));
}

void exp_f32(uint16_t *dst, const uint16_t *x, int n) {
  for (V *out = (V *)dst; n > 0; n -= 64, x += 64) {
    W w = Q6_Ww_vsxt_Vh(*(const V *)x);               // fp16 to two vectors of qf32: one multiplication
    V lo = exp_w(mul_w(LO(w), C(9))), hi = exp_w(mul_w(HI(w), C(9)));
    *out++ = Q6_Vh_vshuffe_VhVh(hi, lo);              // two vectors to fp16
  }
}

void exp_f16(uint16_t *dst, const uint16_t *x, int n) {
  for (V *out = (V *)dst; n > 0; n -= 64, x += 64) {
    V v = *(const V *)x;
    V k = Q6_Vh_vasr_VhR(add_h(v, H(1)), 4);
    V f = add_h(v, Q6_Vh_vasl_VhR(k, 4));
    V r = H(2);
    UNROLL for (int i = 0; i < 4; i++) r = add_h(mul_h(r, f), H(3 + i)); // degree 4 is enough for 11 bits
    r = Q6_Vh_vabs_Vh(r);                             // qf16 to IEEE
    V p = Q6_Vh_vadd_VhVh(r, Q6_Vh_vasl_VhR(k, 10));
    *out++ = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VhVh(splat_h((uint16_t)-14), k), zero(), p); // too small
  }
}

void exp_lut(uint16_t *dst, const uint16_t *x, int n, const uint16_t *table) {
  for (V *out = (V *)dst; n > 0; n -= 64, x += 64)
    Q6_vgather_ARMVh(out++, (int)(uintptr_t)table, 65535, Q6_Vh_vasl_VhR(*(const V *)x, 1));
}
