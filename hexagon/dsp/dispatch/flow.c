#include "flow.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"

// A span is an operand: bytes of the shared memory that a packet reads, or writes.
struct span {
  uint32_t at;
  uint64_t n;
  int writes;
};

enum { SPANS = 6, DEPTH = 16, ALL = -1, COLUMNS = 3 };

// Packets under way, the oldest first: they end in that order.
static struct line {
  struct pending {
    uint32_t number;
    int spans;
    struct span span[SPANS];
  } pending[DEPTH];
  uint32_t begun, ended; // how many, ever
} lines[2];

// spans lists the operands of packets beside which something may be under way; others, ALL, wait for everything.
static int spans(const struct packet *p, const struct memory *m, struct span s[SPANS]) {
  const uint32_t *a = p->args;
  int n = 0;
#define READS(i, bytes) s[n++] = (struct span){a[i], bytes, 0}
#define WRITES(i, bytes) s[n++] = (struct span){a[i], bytes, 1}
  switch (p->op) {
  case OP_PING: return 0;
  case OP_COPY: WRITES(0, a[2]); READS(1, a[2]); return n;
  case OP_COLLECT:
    WRITES(0, (uint64_t)a[2] * a[5]);
    s[n++] = (struct span){TCM_BYTES, m->size - TCM_BYTES, 0}; // the table and pieces anywhere
    return n;
  case OP_DEQUANT: {
    const uint64_t weights = ((uint64_t)a[5] + 1) * 128 * a[8];
    WRITES(0, (uint64_t)a[7] * 8 * TILE_BYTES);
    READS(1, weights / 8 * a[9]);
    READS(4, 128);
    if (a[10] == a[8]) return n;
    READS(2, (weights >> group_shift(a[10])) * 2);
    if (a[3]) READS(3, (weights >> group_shift(a[10])) * 2);
    return n;
  }
  case OP_VLUT16: WRITES(0, (uint64_t)a[2] * 512); READS(1, (uint64_t)a[2] * 144); READS(3, 128); return n;
  case OP_TILE_MUL:
    WRITES(0, (uint64_t)a[7] * a[8] * TILE_BYTES);
    READS(1, (uint64_t)a[7] * a[3] * TILE_BYTES);
    READS(2, (uint64_t)a[8] * a[3] * TILE_BYTES);
    WRITES(10, 256);
    if (!a[6]) return n;
    READS(4, (uint64_t)a[7] * a[6] * TILE_BYTES);
    READS(5, (uint64_t)a[8] * a[6] * TILE_BYTES);
    return n;
  case OP_SOFTMAX:
    WRITES(0, (uint64_t)a[4] * a[5] * TILE_BYTES);
    READS(1, 1 << 16);
    WRITES(2, (uint64_t)a[4] * 32 * sizeof(struct softmax_state));
    WRITES(3, (uint64_t)a[4] * TILE_BYTES);
    return n;
  case OP_FROM_TILES:
    WRITES(0, (uint64_t)(a[3] - 1) * a[5] + 4 * (uint64_t)a[4]);
    READS(1, (uint64_t)a[4] / 32 * TILE_BYTES);
    READS(2, 128);
    WRITES(7, 128);
    return n;
  }
  return ALL;
}

// meet says whether a packet under way writes where an operand lies, or reads where that is written. Products are
// computed one after the other, which the scales of their columns, operand COLUMNS, alone want.
static int meet(const struct pending *q, const struct span *s, int n, int products) {
  for (int i = 0; i < q->spans; i++)
    for (int j = 0; j < n; j++) {
      const struct span *a = &q->span[i], *b = &s[j];
      if ((a->writes | b->writes) && a->at < b->at + b->n && b->at < a->at + a->n && !(products && i == COLUMNS && j == COLUMNS)) return 1;
    }
  return 0;
}

static void retire(struct line *l, const struct memory *m, uint32_t end) {
  if (l->ended == end) return;
  const uint32_t number = l->pending[(end - 1) % DEPTH].number;
  if (l == lines + FLOW_DMA) dma_wait(0, number);
  else m->tiles->wait(number);
  l->ended = end;
}

void flow_settle(const struct packet *p, const struct memory *m) {
  struct span s[SPANS];
  const int n = spans(p, m, s);
  for (struct line *l = lines; l < lines + 2; l++) {
    uint32_t end = l->begun;
    if (n != ALL)
      while (end != l->ended && !meet(&l->pending[(end - 1) % DEPTH], s, n, p->op == OP_TILE_MUL && l == lines + FLOW_TILES)) end--;
    retire(l, m, end);
  }
}

void flow_add(const struct packet *p, const struct memory *m, enum flow flow, uint32_t number) {
  struct line *l = lines + flow;
  if (l->begun - l->ended == DEPTH) retire(l, m, l->ended + 1);
  struct pending *q = &l->pending[l->begun++ % DEPTH];
  q->number = number, q->spans = spans(p, m, q->span);
}

void flow_drain(const struct memory *m) {
  for (struct line *l = lines; l < lines + 2; l++) retire(l, m, l->begun);
}
