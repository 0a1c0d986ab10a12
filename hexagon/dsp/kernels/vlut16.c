// Four-bit codes of super-groups to fp16 by lookup, their scales spread by lookup, too
// (TTS §5.2.2).
#include "hf.h"
#include "hvx.h"
#include "kernels.h"

// Byte 2l: the group of element l of a super-group; byte 2l+1: of element 64+l.
static const uint8_t group_of[128] ALIGNED = {
#define R(g) g, g + 2
#define R8(g) R(g), R(g), R(g), R(g), R(g), R(g), R(g), R(g)
    R8(0), R8(0), R8(0), R8(0), R8(1), R8(1), R8(1), R8(1)};

void vlut16(uint16_t *dst, const uint8_t *groups, int n, const uint16_t *values) {
  const V table = LO(Q6_Wuw_vunpack_Vuh(*(const V *)values));
  const V first = *(const V *)group_of, second = Q6_Vb_vadd_VbVb(first, splat_b(4));
  V *out = (V *)dst;
  for (; n > 0; n--, groups += 16 + 128, out += 4) {
    V q = loadu(groups + 16), scales = LO(Q6_Wuw_vunpack_Vuh(loadu(groups)));
    W lo = LOOKUP(q, table, 0), hi = LOOKUP(high_nibbles(q), table, 0);
    W s0 = LOOKUP(first, scales, 0), s1 = LOOKUP(second, scales, 0);
    out[0] = hf_mul(LO(lo), LO(s0));
    out[1] = hf_mul(HI(lo), HI(s0));
    out[2] = hf_mul(LO(hi), LO(s1));
    out[3] = hf_mul(HI(hi), HI(s1));
  }
}
