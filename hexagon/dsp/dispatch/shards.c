// Into how many shards an operation is cut. A barrier is as long as a thousand packets or so:
// what takes no longer is left to one worker.
#include "shards.h"

// An extent is an operation's units, and about how many packets of a chip each takes. Not
// cut: copies, which are one engine's; the tile unit's products; OP_FROM_TILES, whose flags
// are one vector; OP_FOLD.
struct extent {
  uint32_t units;
  uint64_t packets;
};

// quotient divides: a chip has no instruction for it. Each operation is cut: only digits that there are count.
static uint32_t quotient(uint32_t n, uint32_t d) {
  uint32_t q = 0;
  for (int i = n < d ? -1 : __builtin_clz(d) - __builtin_clz(n); i >= 0; i--)
    if (n >> i >= d) n -= d << i, q |= 1u << i;
  return q;
}

static struct extent extent(const struct packet *p) {
  const uint32_t *a = p->args;
  switch (p->op) {
  case OP_PRECOMPUTE: return (struct extent){a[1] * tables_units(a), 350};
  case OP_GEMV: {
    const uint32_t rows = gemv_strips(a) * 128;
    return (struct extent){quotient(a[6] + rows - 1, rows), (uint64_t)rows * a[7] / 1024 * a[8] * 4 * a[3]};
  }
  case OP_DEQUANT: return (struct extent){a[7], 400};
  case OP_BYTE_TILES: return (struct extent){a[2], 300};
  case OP_VLUT16: return (struct extent){a[2], 16};
  case OP_EXP_TABLE: return (struct extent){32768 / EXP_UNIT, 9000};
  case OP_SOFTMAX: return (struct extent){a[4] * 16 / SOFTMAX_UNIT, 200 + 20 * (uint64_t)a[5]};
  case OP_RMS_NORM:
    if (a[4] > 1) return (struct extent){a[4], (uint64_t)a[3] * a[5] / 8}; // heads
    return (struct extent){a[3], a[5] / 8};
  case OP_SOFT_CAP: return (struct extent){a[2], 100};
  case OP_LAYER_NORM: return (struct extent){a[4], a[5] / 4};
  case OP_QUANTIZE: return (struct extent){a[3], a[5] / 4};
  case OP_SCALE: return (struct extent){a[6] / 32, 6 * (uint64_t)a[5]};
  case OP_ADD: return (struct extent){a[3] / 32, 4 * (uint64_t)a[2]};
  case OP_ROPE: return (struct extent){a[3], (uint64_t)a[2] * a[5] / 4};
  case OP_GLU: return (struct extent){a[4] / 32, 40 * (uint64_t)a[3]};
  case OP_ROWS_TO_TILES: return (struct extent){tiles_of(a[3]), 40 * (uint64_t)a[4]};
  case OP_TILES_TO_ROWS: return (struct extent){tiles_of(a[5]), 12 * (uint64_t)a[6]};
  case OP_MUL: return (struct extent){a[4] / 32, 3 * (uint64_t)a[3]};
  case OP_CONV: return (struct extent){a[5] / 32, (4 * (uint64_t)a[8] + (a[9] ? 40 : 0)) * a[4]};
  case OP_GATES: return (struct extent){a[4] / 32, 80 * (uint64_t)a[3]};
  case OP_DELTA: return (struct extent){a[6] * a[7] * (a[8] / 32), 8 * (uint64_t)a[8] * a[5]};
  case OP_TO_TILES: // parts lie apart, or they are one worker's
    return (struct extent){a[3], a[6] < a[4] / 32 * TILE_BYTES ? 0 : (uint64_t)a[2] * (a[4] / 32) * (a[8] ? 60 : 8)};
  }
  return (struct extent){1, 0};
}

struct operation cut(const struct packet *p, const struct memory *m) {
  const struct extent e = extent(p);
  uint32_t most = (uint32_t)m->workers, shards = 1;
  if (p->op == OP_GEMV && most > gemv_shares(p->args)) most = gemv_shares(p->args);
  if (most > e.units) most = e.units;
  while (shards < most && e.units * e.packets >= (uint64_t)(shards + 1) * m->enough) shards++;
  return (struct operation){p, m, e.units, shards > 1 ? quotient(e.units, shards) : e.units, (int)shards};
}
