#include "flow.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"

enum { DEPTH = 16, FAR = 24 };

// Packets under way, the oldest first: they end in that order.
static struct line {
  struct pending {
    uint32_t number;
    struct operands of;
  } pending[DEPTH];
  uint32_t begun, ended; // how many, ever
} lines[2];

// meet says whether a packet under way writes where an operand lies, or reads where that is written. Of one line
// what is in order does not count.
static int meet(const struct operands *a, const struct operands *b, int of_line) {
  for (int i = 0; i < a->n; i++)
    for (int j = 0; j < b->n; j++)
      if (((a->span[i].rule | b->span[j].rule) & WRITES) && overlap(&a->span[i], &b->span[j]) && !(of_line && (a->span[i].rule & b->span[j].rule & IN_ORDER))) return 1;
  return 0;
}

static void retire(struct line *l, const struct memory *m, uint32_t end) {
  if (l->ended == end) return;
  const uint32_t number = l->pending[(end - 1) % DEPTH].number;
  if (l == lines + FLOW_DMA) dma_wait(0, number);
  else m->tiles->wait(number);
  l->ended = end;
}

// settle waits for what is under way that operands meet.
static void settle(const struct operands *o, int of_tiles, const struct memory *m) {
  for (struct line *l = lines; l < lines + 2; l++) {
    uint32_t end = l->begun;
    while (end != l->ended && !meet(&l->pending[(end - 1) % DEPTH].of, o, of_tiles == (l == lines + FLOW_TILES))) end--;
    retire(l, m, end);
  }
}

void flow_settle(const struct operands *o, int of_tiles, const struct memory *m) {
  if (lines[0].begun == lines[0].ended && lines[1].begun == lines[1].ended) return;
  settle(o, of_tiles, m);
}

const struct packet *flow_ahead(const struct packet *p, const struct packet *end, const struct memory *m) {
  const struct packet *next = p + 1;
  while (next < end && next->op != OP_GEMV && next - p < FAR) next++;
  if (next >= end || next->op != OP_GEMV) return 0;
  struct operands tiles, between;
  if (operands_of(next, m->size, &tiles)) return 0;
  tiles.span[OF_GEMV_SCRATCH].from += (uint32_t)gemv_sums(next->args); // DMA's buffers
  for (int i = OF_GEMV_Y; i < OF_GEMV_WEIGHTS; i++) tiles.span[i] = (struct span){0, 0, 0};
  for (const struct packet *q = p; q < next; q++)
    if (operands_of(q, m->size, &between) || meet(&tiles, &between, 0)) return 0;
  settle(&tiles, 0, m);
  return next;
}

void flow_add(const struct operands *o, enum flow flow, uint32_t number, const struct memory *m) {
  struct line *l = lines + flow;
  if (l->begun - l->ended == DEPTH) retire(l, m, l->ended + 1);
  struct pending *q = &l->pending[l->begun++ % DEPTH];
  q->number = number;
  q->of.n = o->n;
  for (int i = 0; i < o->n; i++) q->of.span[i] = o->span[i];
}

void flow_drain(const struct memory *m) {
  for (struct line *l = lines; l < lines + 2; l++) retire(l, m, l->begun);
}
