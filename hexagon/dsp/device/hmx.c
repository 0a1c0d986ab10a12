// OP_TILE_MUL on the tile unit. No chip has run it. A chip's accumulator is wider than
// fp16; its results may differ in the last place from the float32 sums that the protocol
// defines. Call between platform_lock_tiles and platform_unlock_tiles. All that the unit reads lies
// in TCM, the scales of columns too, and tiles begin at multiples of their size. An instruction's tiles lie in one
// page of TCM, or it faults: wherever a run of tiles crosses a boundary, it is cut there.
#include "hmx.h"
#include "tile.h"

enum { AT_ONCE = 32, TILE_BITS = 11, LANES_BITS = 10 }; // pairs of tiles an instruction; bits of a tile's size

// within returns how many of n tiles of 2^bits bytes, the first of which lies at p, are in its window.
static int within(const void *p, int bits, int n) {
  const int left = (int)((HMX_WINDOW - ((uintptr_t)p & (HMX_WINDOW - 1))) >> bits);
  return n < left ? n : left;
}

// at_once returns how many of k pairs of tiles the next instruction has.
static int at_once(const void *act, const void *wgt, int bits, int k) { return within(act, TILE_BITS, within(wgt, bits, k < AT_ONCE ? k : AT_ONCE)); }

static void multiply(const uint16_t *act, const uint16_t *wgt, int k) {
  for (int n; k > 0; k -= n, act += n * 1024, wgt += n * 1024) {
    n = at_once(act, wgt, TILE_BITS, k);
    hmx_multiply(act, wgt, (uint32_t)n);
  }
}

static void multiply_bytes(const uint8_t *act, const uint8_t *wgt, int k) {
  for (int n; k > 0; k -= n, act += n * TILE_BYTES, wgt += n * LANES_BYTES) {
    n = at_once(act, wgt, LANES_BITS, k);
    hmx_multiply_bytes(act, wgt, (uint32_t)n);
  }
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
      multiply_bytes(act, wgt, t->k0);
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
