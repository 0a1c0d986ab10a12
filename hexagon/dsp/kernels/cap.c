// Soft caps of scores: an odd function of every fp16, gathered from a table as softmax's
// exponentials are.
#include "hf.h"
#include "hvx.h"
#include "kernels.h"
#include "machine.h"

enum { AHEAD = 8 }; // vectors whose numbers are under way: half a tile

// begin has vectors replaced when their numbers come, and keeps their signs.
INLINE void begin(V *s, V *signs, const uint16_t *table) {
  UNROLL for (int i = 0; i < AHEAD; i++) {
    signs[i] = Q6_V_vand_VV(s[i], splat_h(0x8000));
    gather(s + i, table, Q6_Vh_vasl_VhR(s[i], 1)); // without the sign, in bytes
  }
}
INLINE void end(V *s, const V *signs) {
  UNROLL for (int i = 0; i < AHEAD; i++) s[i] = Q6_V_vor_VV(gathered(s + i), signs[i]);
}

void soft_cap(uint16_t *scores, const uint16_t *table, int tiles) {
  V *s = (V *)scores, even[AHEAD], odd[AHEAD];
  begin(s, even, table);
  for (int t = 0; t < tiles; t++, s += 2 * AHEAD) {
    begin(s + AHEAD, odd, table);
    end(s, even);
    if (t + 1 < tiles) begin(s + 2 * AHEAD, even, table);
    end(s + AHEAD, odd);
  }
}
