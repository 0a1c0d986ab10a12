#include "flow.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"

// Operands of a packet are spans of the shared memory: those that it writes, and behind them those that it reads.
struct operands {
  int n, writes;
  struct span {
    uint32_t from, end;
  } span[8];
};

enum { DEPTH = 16, COLUMNS = 1, FAR = 24 };

// Packets under way, the oldest first: they end in that order.
static struct line {
  struct pending {
    uint32_t number;
    struct operands of;
  } pending[DEPTH];
  uint32_t begun, ended; // how many, ever
} lines[2];

static void span(struct operands *o, uint32_t from, uint64_t n) {
  const uint64_t end = from + n;
  o->span[o->n++] = (struct span){from, end < ~0u ? (uint32_t)end : ~0u};
}

static void floats(struct operands *o, uint32_t from, uint32_t n, uint64_t numbers, uint32_t stride) { span(o, from, (uint64_t)(n - 1) * stride + 4 * numbers); }

// weights are the spans that the tiles of an OP_GEMV come from.
static void weights(struct operands *o, const uint32_t *a) {
  const uint64_t n = (uint64_t)a[6] * a[7];
  span(o, a[1], n / 8 * a[8]);
  if (a[9] == a[7]) return;
  span(o, a[4], (n >> group_shift(a[9])) * 2);
  if (a[5]) span(o, a[5], (n >> group_shift(a[9])) * 2);
}

static uint64_t sums(const uint32_t *a) { return pages((uint64_t)4 * a[6] * a[3]); }
static uint64_t buffers(const uint32_t *a) { return gemv_shares(a) * GEMV_BUFFERS * gemv_buffer(a); }

// operands_ahead lists those of packets between products by lookups; by itself, for operands of others would keep more registers.
static int __attribute__((noinline)) operands_ahead(const struct packet *p, struct operands *o) {
  const uint32_t *a = p->args;
#define SPAN(i, bytes) span(o, a[i], bytes)
#define READS o->writes = o->n
  switch (p->op) {
  case OP_GEMV:
    SPAN(0, (uint64_t)4 * a[6] * a[3]);
    SPAN(12, sums(a) + buffers(a));
    READS;
    weights(o, a);
    SPAN(2, (uint64_t)a[3] * table_row(a[7], gemv_bytes(a)));
    if (gemv_bytes(a) && a[8] == 4) SPAN(11, 16);
    return 1;
  case OP_PRECOMPUTE: SPAN(0, (uint64_t)a[1] * table_row(a[3], a[4] == 1)); READS; SPAN(2, (uint64_t)2 * a[1] * a[3]); return 1;
#define FLOATS(i, rows, numbers, stride) floats(o, a[i], a[rows], (uint64_t)(numbers), a[stride])
  case OP_RMS_NORM:
    FLOATS(0, 3, (uint64_t)a[4] * a[5], 6);
    READS;
    FLOATS(1, 3, (uint64_t)a[4] * a[5], 7);
    if (a[2]) SPAN(2, 4 * (uint64_t)a[5]);
    return 1;
  case OP_LAYER_NORM: FLOATS(0, 4, a[5], 6); READS; FLOATS(1, 4, a[5], 7); SPAN(2, 4 * (uint64_t)a[5]); SPAN(3, 4 * (uint64_t)a[5]); return 1;
  case OP_QUANTIZE: SPAN(0, (uint64_t)2 * a[3] * a[4]); SPAN(1, 4 * (uint64_t)a[3]); READS; FLOATS(2, 3, a[5], 6); return 1;
  case OP_SCALE:
    FLOATS(0, 5, a[6], 7);
    READS;
    FLOATS(1, 5, a[6], 8);
    SPAN(2, 4 * (uint64_t)a[5]);
    SPAN(3, 4 * (uint64_t)a[6]);
    if (a[4]) SPAN(4, 4 * (uint64_t)a[6]);
    return 1;
  case OP_ADD: FLOATS(0, 2, a[3], 4); READS; FLOATS(1, 2, a[3], 5); return 1;
  case OP_ROPE: FLOATS(0, 2, (uint64_t)a[3] * a[4], 7); READS; SPAN(1, (uint64_t)8 * a[5] * a[2]); return 1;
  case OP_GLU: FLOATS(0, 3, a[4], 5); READS; FLOATS(1, 3, a[4], 6); FLOATS(2, 3, a[4], 6); return 1;
  }
  return 0;
}

// operands lists those of packets beside which something may be under way; others, which it does not know,
// wait for everything.
static int operands(const struct packet *p, const struct memory *m, struct operands *o) {
  const uint32_t *a = p->args;
  o->n = 0;
  switch (p->op) {
  case OP_PING: READS; return 1;
  case OP_COPY: SPAN(0, a[2]); READS; SPAN(1, a[2]); return 1;
  case OP_COLLECT: // the table, and pieces anywhere
    SPAN(0, (uint64_t)a[2] * a[5]);
    READS;
    span(o, TCM_BYTES, m->size - TCM_BYTES);
    return 1;
  case OP_DEQUANT: {
    const uint64_t weights = ((uint64_t)a[5] + dequant_strips(a)) * 128 * a[8];
    SPAN(0, (uint64_t)a[7] * dequant_strips(a) * 8 * TILE_BYTES);
    READS;
    SPAN(1, weights / 8 * a[9]);
    SPAN(4, 128);
    if (a[10] == a[8]) return 1;
    SPAN(2, (weights >> group_shift(a[10])) * 2);
    if (a[3]) SPAN(3, (weights >> group_shift(a[10])) * 2);
    return 1;
  }
  case OP_VLUT16: SPAN(0, (uint64_t)a[2] * 512); READS; SPAN(1, (uint64_t)a[2] * 144); SPAN(3, 128); return 1;
  case OP_TILE_MUL:
    SPAN(0, (uint64_t)a[7] * a[8] * TILE_BYTES);
    SPAN(10, 256);
    READS;
    SPAN(1, (uint64_t)a[7] * a[3] * TILE_BYTES);
    SPAN(2, (uint64_t)a[8] * a[3] * TILE_BYTES);
    if (!a[6]) return 1;
    SPAN(4, (uint64_t)a[7] * a[6] * TILE_BYTES);
    SPAN(5, (uint64_t)a[8] * a[6] * TILE_BYTES);
    return 1;
  case OP_BYTE_TILES: SPAN(0, (uint64_t)a[2] * 4 * TILE_BYTES); READS; SPAN(1, (uint64_t)a[2] * 1024 * a[3]); return 1;
  case OP_TILE_MUL_BYTES:
    SPAN(0, (uint64_t)a[4] * a[5] * PLANES * TILE_BYTES);
    SPAN(6, 512);
    READS;
    SPAN(1, (uint64_t)a[4] * a[3] * TILE_BYTES);
    SPAN(2, (uint64_t)a[5] * a[3] * LANES_BYTES);
    return 1;
  case OP_SOFTMAX:
    SPAN(0, (uint64_t)a[4] * a[5] * TILE_BYTES);
    SPAN(2, (uint64_t)a[4] * 32 * sizeof(struct softmax_state));
    SPAN(3, (uint64_t)a[4] * TILE_BYTES);
    READS;
    SPAN(1, 1 << 16);
    return 1;
  case OP_FROM_TILES:
    SPAN(0, (uint64_t)(a[3] - 1) * a[5] + 4 * (uint64_t)a[4]);
    SPAN(7, 128);
    READS;
    SPAN(1, (uint64_t)a[4] / 32 * TILE_BYTES);
    SPAN(2, 128);
    return 1;
  case OP_ROWS_TO_TILES:
    SPAN(0, 64 * (uint64_t)a[4] * tiles_of(a[3]));
    SPAN(1, 4 * (uint64_t)a[3]);
    READS;
    SPAN(2, (uint64_t)(a[3] - 1) * a[6] + 4 * (uint64_t)a[5]);
    return 1;
  case OP_TILES_TO_ROWS:
    SPAN(0, (uint64_t)(a[5] - 1) * a[7] + 4 * (uint64_t)a[6]);
    READS;
    SPAN(1, (uint64_t)a[6] / 32 * tiles_of(a[5]) * TILE_BYTES);
    SPAN(2, 4 * (uint64_t)a[5]);
    SPAN(3, 4 * (uint64_t)a[6]);
    if (a[4]) SPAN(4, 4 * (uint64_t)a[6]);
    return 1;
  case OP_SOFT_CAP: SPAN(0, (uint64_t)a[2] * TILE_BYTES); READS; SPAN(1, 1 << 16); return 1;
  }
  return operands_ahead(p, o);
}

// meet says whether a packet under way writes where an operand lies, or reads where that is written. Products are
// computed one after the other, which the scales of their columns, operand COLUMNS, alone want.
static int meet(const struct operands *a, const struct operands *b, int products) {
  for (int i = 0; i < a->n; i++)
    for (int j = 0, n = i < a->writes ? b->n : b->writes; j < n; j++)
      if (a->span[i].from < b->span[j].end && b->span[j].from < a->span[i].end && !(products && i == COLUMNS && j == COLUMNS)) return 1;
  return 0;
}

static void retire(struct line *l, const struct memory *m, uint32_t end) {
  if (l->ended == end) return;
  const uint32_t number = l->pending[(end - 1) % DEPTH].number;
  if (l == lines + FLOW_DMA) dma_wait(0, number);
  else m->tiles->wait(number);
  l->ended = end;
}

// settle waits for what is under way that operands meet; with none for all.
static void settle(const struct operands *o, int of_tiles, const struct memory *m) {
  for (struct line *l = lines; l < lines + 2; l++) {
    uint32_t end = l->begun;
    if (o)
      while (end != l->ended && !meet(&l->pending[(end - 1) % DEPTH].of, o, of_tiles && l == lines + FLOW_TILES)) end--;
    retire(l, m, end);
  }
}

void flow_settle(const struct packet *p, const struct memory *m) {
  if (lines[0].begun == lines[0].ended && lines[1].begun == lines[1].ended) return;
  struct operands o;
  settle(operands(p, m, &o) ? &o : 0, of_tile_unit(p), m);
}

const struct packet *flow_ahead(const struct packet *p, const struct packet *end, const struct memory *m) {
  const struct packet *next = p + 1;
  while (next < end && next->op != OP_GEMV && next - p < FAR) next++;
  if (next >= end || next->op != OP_GEMV) return 0;
  struct operands tiles = {0}, between;
  const uint32_t *a = next->args;
  const uint64_t to = a[12] + sums(a);
  if (to >= TCM_BYTES) return 0;
  span(&tiles, (uint32_t)to, buffers(a));
  tiles.writes = tiles.n;
  weights(&tiles, a);
  for (const struct packet *q = p; q < next; q++)
    if (!operands(q, m, &between) || meet(&tiles, &between, 0)) return 0;
  settle(&tiles, 0, m);
  return next;
}

void flow_add(const struct packet *p, const struct memory *m, enum flow flow, uint32_t number) {
  struct line *l = lines + flow;
  if (l->begun - l->ended == DEPTH) retire(l, m, l->ended + 1);
  struct pending *q = &l->pending[l->begun++ % DEPTH];
  q->number = number;
  operands(p, m, &q->of);
}

void flow_drain(const struct memory *m) {
  for (struct line *l = lines; l < lines + 2; l++) retire(l, m, l->begun);
}
