// Four-bit groups in the layouts that super-groups are compared with (TTS, Figure 15).
#include "ablation.h"

// two_groups are 64 fp16 numbers of two groups that stand one after the other.
INLINE V two_groups(const uint8_t *g, V table, Q half) {
  V q0 = loadu(g + 2), q1 = loadu(g + GROUP_BYTES + 2);
  // 16 bytes of low nibbles and 16 of high ones of each group; each byte in a halfword.
  V a = LO(Q6_Wuh_vunpack_Vub(q0)), b = LO(Q6_Wuh_vunpack_Vub(q1)); // 16 halfwords each
  W u = exchange(Q6_V_vand_VV(a, splat_h(15)), Q6_Vuh_vlsr_VuhR(a, 4), 32);
  W v = exchange(Q6_V_vand_VV(b, splat_h(15)), Q6_Vuh_vlsr_VuhR(b, 4), 32);
  V codes = Q6_V_vmux_QVV(half, LO(u), Q6_V_vror_VR(LO(v), 64));
  V values = LO(LOOKUP(codes, table, 0)); // even bytes
  uint32_t s0 = *(const uint16_t *)g, s1 = *(const uint16_t *)(g + GROUP_BYTES);
  return hf_mul(values, Q6_V_vmux_QVV(half, splat_h(s0), splat_h(s1)));
}

void aos_dequant(uint16_t *dst, const uint8_t *groups, int n, const uint16_t *values) {
  const V table = LO(Q6_Wuw_vunpack_Vuh(*(const V *)values));
  const Q half = Q6_Q_vsetq_R(64);
  for (V *out = (V *)dst; n > 0; n -= 2, groups += 2 * GROUP_BYTES) *out++ = two_groups(groups, table, half);
}

// Pairs of columns 2i, 2i+1 of one row are a word; in a weight tile they stand a row
// pair of the tile, 128 bytes, apart.
void scatter_dequant(uint16_t *tiles, const uint8_t *groups, int k, const uint16_t *values) {
  const V table = LO(Q6_Wuw_vunpack_Vuh(*(const V *)values));
  const Q half = Q6_Q_vsetq_R(64);
  static uint32_t at[32] ALIGNED; // word i of two groups: of two tiles
  for (uint32_t i = 0; i < 32; i++) at[i] = i / 16 * TILE * 2 + i % 16 * 128;
  for (uint32_t row = 0; row < 32; row++)
    for (int c = 0; c < k; c += 64, groups += 2 * GROUP_BYTES) {
      V v = two_groups(groups, table, half);
      uint16_t *tile = tiles + (uint32_t)(c / 32) * TILE;
      Q6_vscatter_RMVwV((uint32_t)(uintptr_t)(tile + 2 * row), 2 * TILE * 2 - 1, *(const V *)at, v);
    }
}

void copy(void *dst, const void *src, uint32_t n) {
  V *d = dst;
  const V *s = src;
  for (n /= sizeof(V); n; n--) *d++ = *s++;
}
