// Rings of descriptors, one for each engine of DMA. The engine reads them while the thread pushes more:
// its way from one to the next is the link that each has. Transfers end in the order in which they
// begin, so the oldest of a ring is the first that may be used again.
#include "machine.h"

static struct ring {
  struct transfer t[DMA_RING];
  uint32_t pushed, ended; // how many, ever
} rings[DMA_ENGINES];

static struct transfer *of(struct ring *r, uint32_t number) { return r->t + ((number - 1) & (DMA_RING - 1)); }

void dma_wait(int engine, uint32_t number) {
  struct ring *r = rings + engine;
  if ((int32_t)(number - r->ended) <= 0) return;
  dma_finish(engine, of(r, number));
  r->ended = number;
}

uint32_t dma_push(int engine, void *dst, const void *src, uint32_t n, uint32_t flags) {
  struct ring *r = rings + engine;
  uint8_t *to = dst;
  const uint8_t *from = src;
  for (uint32_t part; n; to += part, from += part, n -= part) {
    part = n < DMA_LARGEST ? n : DMA_LARGEST;
    if (r->pushed - r->ended == DMA_RING) dma_wait(engine, r->ended + 1);
    struct transfer *last = r->pushed == r->ended ? 0 : of(r, r->pushed), *t = of(r, r->pushed + 1);
    *t = transfer(to, from, part, flags);
    dma_link(engine, last, t);
    r->pushed++;
  }
  return r->pushed;
}

void dma_copy(int engine, void *dst, const void *src, uint32_t n) { dma_wait(engine, dma_push(engine, dst, src, n, 0)); }
