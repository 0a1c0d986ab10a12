// Lookup tables of activations for bit-serial products (T-MAN §4.3), and their sums.
#include "hvx.h"
#include "kernels.h"

// store_sums adds each 32 of 256 activations and stores the 8 sums at sums, which is
// aligned to 32 bytes.
INLINE void store_sums(int32_t *sums, const V *x) {
  V s[4]; // word l: activations 2l and 2l+1 of 64
  UNROLL for (int i = 0; i < 4; i++) s[i] = Q6_Vw_vdmpy_VhRb(x[i], 0x01010101);
  W a = exchange(s[0], s[1], 4), b = exchange(s[2], s[3], 4); // the vector's number into word bits 0, 1
  W c = exchange(Q6_Vw_vadd_VwVw(LO(a), HI(a)), Q6_Vw_vadd_VwVw(LO(b), HI(b)), 8);
  V t = Q6_Vw_vadd_VwVw(LO(c), HI(c));
  t = Q6_Vw_vadd_VwVw(t, Q6_V_vror_VR(t, 16));
  t = Q6_Vw_vadd_VwVw(t, Q6_V_vror_VR(t, 32)); // words 0..3: first halves; 16..19: second halves
  t = LO(Q6_W_vshuff_VVR(Q6_V_vror_VR(t, 64), t, -4));
  int at = (int)((uintptr_t)sums & 127);
  V *line = (V *)((uintptr_t)sums & ~(uintptr_t)127);
  Q upto = Q6_Q_vsetq2_R(at + 32), before = Q6_Q_vsetq_R(at); // none before when at is 0
  Q6_vmem_QRIV(Q6_Q_and_QQn(upto, before), line, Q6_V_vror_VR(t, -at));
}

// The number of a column among 256 is [t2 t1 t0 h q2 q1 q0 s]: tile of 32 columns t,
// quad q, place in the quad h and s. All 64 quads' tables are made at once: a lane is a
// quad, a vector one of the 16 sums of a subset.
void precompute(int16_t *tables, int32_t *sums, const int16_t *x, int K) {
  for (int k = 0; k < K; k += TABLE_COLS, x += TABLE_COLS, tables += TABLE_BYTES / 2, sums += 8) {
    const V *xv = (const V *)x;             // vector [t2 t1], lane [t0 h q s]
    store_sums(sums, xv);
    W e = Q6_W_vdeal_VVR(xv[1], xv[0], -2); // vector s, lane [t1 t0 h q]
    W f = Q6_W_vdeal_VVR(xv[3], xv[2], -2);
    W s0 = exchange(LO(e), LO(f), 16);      // vector h, lane [t1 t0 t2 q]
    W s1 = exchange(HI(e), HI(f), 16);
    V t[16];
    t[0] = zero();
    t[1] = LO(s0), t[2] = HI(s0), t[4] = LO(s1), t[8] = HI(s1);
    UNROLL for (int n = 3; n < 16; n++)
      if (n & (n - 1)) t[n] = Q6_Vh_vadd_VhVh(t[n & (n - 1)], t[n & -n]);
    // The number of the sum moves into lane bits 1..4; what stood there becomes the
    // register: register r holds the quads (v0<<5 | r<<1 | v1).
    UNROLL for (int s = 0; s < 4; s++)
      UNROLL for (int i = 0; i < 16; i++)
        if (!(i >> s & 1)) {
          W p = exchange(t[i], t[i | 1 << s], 4 << s);
          t[i] = LO(p), t[i | 1 << s] = HI(p);
        }
    UNROLL for (int r = 0; r < 16; r++) ((V *)tables)[r] = t[r];
  }
}

// precompute_bytes splits activations for products of bytes: of each four the low bytes,
// then the high ones.
void precompute_bytes(uint8_t *bytes, int32_t *sums, const int16_t *x, int K) {
  V *to = (V *)bytes;
  for (int k = 0; k < K; k += TABLE_COLS, x += TABLE_COLS, sums += 8) {
    const V *xv = (const V *)x;
    store_sums(sums, xv);
    UNROLL for (int i = 0; i < 4; i += 2, to += 2) {
      W words = Q6_W_vshuff_VVR(Q6_Vb_vpacko_VhVh(xv[i + 1], xv[i]), Q6_Vb_vpacke_VhVh(xv[i + 1], xv[i]), -4);
      to[0] = LO(words), to[1] = HI(words);
    }
  }
}
