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

// products_of_bytes leaves the sums' lowest bytes first, each by a scale of 2^-8 more: a chip's integers have no other way
// out but saturated.
static void products_of_bytes(const struct tile_mul *t) {
  const uint8_t *act = (const uint8_t *)t->act0;
  uint8_t *out = (uint8_t *)t->out;
  for (uint32_t i = 0; i < 32 * PLANES; i++) t->columns[i] = (24 - i / 32 * 8) << 10;
  for (int row = 0; row < t->rows; row++, act += t->k0 * TILE_BYTES) {
    const uint8_t *wgt = (const uint8_t *)t->wgt0;
    for (int col = 0; col < t->cols; col++, wgt += t->k0 * LANES_BYTES) {
      hmx_clear_sums();
      for (int k = 0; k < t->k0; k += AT_ONCE)
        hmx_multiply_bytes(act + k * TILE_BYTES, wgt + k * LANES_BYTES, (uint32_t)(t->k0 - k < AT_ONCE ? t->k0 - k : AT_ONCE));
      for (int p = 0; p < PLANES; p++, out += TILE_BYTES) hmx_store_plane(out, t->columns + 32 * p);
    }
  }
}

void tile_mul(const struct tile_mul *t) {
  if (t->bytes) {
    products_of_bytes(t);
    return;
  }
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
