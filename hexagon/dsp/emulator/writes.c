#include "../dispatch/shards.h"
#include "../kernels/kernels.h"
#include "writes.h"

// floats are n rows. What lies between them stays, and may be read.
static struct write floats(const struct operation *o, uint32_t n, uint32_t numbers, uint32_t stride, int kept) {
  return (struct write){at(o->memory, o->packet->args[0]), (n - 1) * stride + 4 * numbers, 128, kept || n > 1};
}

int writes(const struct operation *o, struct write w[WRITES]) {
  const uint32_t *a = o->packet->args;
#define VECTORS(i, bytes) ((struct write){at(o->memory, a[i]), bytes, 128, 0})
  switch (o->packet->op) {
  case OP_PRECOMPUTE:
    w[0] = VECTORS(0, a[1] * table_row(a[3], a[4] == 1));
    w[0].kept = a[3] % TABLES_UNIT != 0; // what lies between rows stays
    return 1;
  case OP_GEMV:
    w[0] = VECTORS(0, 4 * a[6] * a[3]), w[1] = VECTORS(12, (uint32_t)pages((uint64_t)4 * a[6] * a[3]) + gemv_shares(a) * GEMV_BUFFERS * (uint32_t)gemv_buffer(a));
    return 2;
  case OP_DEQUANT: w[0] = VECTORS(0, a[7] * 8 * TILE_BYTES); return 1;
  case OP_BYTE_TILES: w[0] = VECTORS(0, a[2] * 4 * TILE_BYTES); return 1;
  case OP_VLUT16: w[0] = VECTORS(0, a[2] * 512); return 1;
  case OP_EXP_TABLE: w[0] = VECTORS(0, 1 << 16); return 1;
  case OP_SOFTMAX:
    w[0] = VECTORS(0, a[4] * a[5] * TILE_BYTES), w[1] = VECTORS(2, a[4] * 32 * 24), w[2] = VECTORS(3, a[4] * TILE_BYTES);
    w[0].kept = w[1].kept = 1, w[1].unit = 4;
    return 3;
  case OP_RMS_NORM: w[0] = floats(o, a[3], a[4] * a[5], a[6], a[0] == a[1]); return 1;
  case OP_LAYER_NORM: w[0] = floats(o, a[4], a[5], a[6], a[0] == a[1]); return 1;
  case OP_SOFT_CAP:
    w[0] = VECTORS(0, a[2] * TILE_BYTES);
    w[0].kept = 1;
    return 1;
  case OP_QUANTIZE:
    w[0] = VECTORS(0, 2 * a[3] * a[4]), w[1] = VECTORS(1, 4 * a[3]);
    w[1].unit = 4;
    return 2;
  case OP_SCALE: w[0] = floats(o, a[5], a[6], a[7], a[0] == a[1]); return 1;
  case OP_ADD: w[0] = floats(o, a[2], a[3], a[4], 1); return 1;
  case OP_ROPE: w[0] = floats(o, a[2], a[3] * a[4], a[7], 1); return 1;
  case OP_GLU: w[0] = floats(o, a[3], a[4], a[5], a[0] == a[1] || a[0] == a[2]); return 1;
  case OP_ROWS_TO_TILES:
    w[0] = VECTORS(0, tiles_of(a[3]) * 64 * a[4]), w[1] = VECTORS(1, 4 * a[3]);
    w[1].unit = 4;
    return 2;
  case OP_TILES_TO_ROWS: w[0] = floats(o, a[5], a[6], a[7], (int)a[9]); return 1;
  case OP_MUL: w[0] = floats(o, a[3], a[4], a[5], a[0] == a[1] || a[0] == a[2]); return 1;
  case OP_CONV:
    w[0] = floats(o, a[4], a[5], a[6], 0), w[1] = VECTORS(3, 4 * (a[8] - 1) * a[5]);
    w[1].kept = 1;
    return 2;
  case OP_GATES: w[0] = floats(o, a[3], a[4], a[5], a[0] == a[1]); return 1;
  case OP_DELTA:
    w[0] = floats(o, a[5], a[6] * a[7] * a[8], a[9], 0), w[1] = VECTORS(4, 4 * a[6] * a[7] * a[8] * a[8]);
    w[1].kept = a[3] == a[4];
    return 2;
  case OP_TO_TILES:
    w[0] = VECTORS(0, (a[3] - 1) * a[6] + a[4] / 32 * TILE_BYTES);
    w[0].kept = 1;
    return 1;
  }
  return 0;
}
