// OP_TILE_MUL on the tile unit. No chip has run it. A chip's accumulator is wider than
// fp16; its results may differ in the last place from the float32 sums that the protocol
// defines. Call between platform_lock_tiles and platform_unlock_tiles. All that the unit reads lies
// in TCM, the scales of columns too, and tiles begin at multiples of their size.
#include "hmx.h"
#include "tile.h"

enum { AT_ONCE = 32 }; // pairs of tiles an instruction

static void multiply(const uint16_t *act, const uint16_t *wgt, int k) {
  for (; k > 0; k -= AT_ONCE, act += AT_ONCE * 1024, wgt += AT_ONCE * 1024) hmx_multiply(act, wgt, (uint32_t)(k < AT_ONCE ? k : AT_ONCE));
}

void tile_mul(const struct tile_mul *t) {
  for (int i = 0; i < 32; i++) t->columns[i] = t->scale, t->columns[32 + i] = 0;
  hmx_columns(t->columns);
  for (int row = 0; row < t->rows; row++)
    for (int col = 0; col < t->cols; col++) {
      hmx_clear();
      multiply(t->act0 + row * t->k0 * 1024, t->wgt0 + col * t->k0 * 1024, t->k0);
      if (t->k1) multiply(t->act1 + row * t->k1 * 1024, t->wgt1 + col * t->k1 * 1024, t->k1);
      hmx_store(t->out + (row * t->cols + col) * 1024);
    }
}
