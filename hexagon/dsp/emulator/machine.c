#include "../kernels/machine.h"
#include "machine.h"

enum { PAGE = 1 << 16, MOST = 256, POISON = 0xa5 };

struct machine machine;

// Transfers under way, of each thread: their bytes arrive when they are waited for.
static struct flight {
  const struct transfer *t;
  int n, first, pages; // protected pages of TCM
} flights[MACHINE_THREADS];

void machine_fault(const char *what) {
  static const char before[] = "the machine's fault: ", end[] = "\n";
  uint32_t n = 0;
  while (what[n]) n++;
  rt_write(2, before, sizeof before - 1), rt_write(2, what, n), rt_write(2, end, 1);
  rt_exit(99);
}

static struct flight *own(void) { return flights + (machine.thread ? machine.thread() : 0); }

static void segmentation(uint32_t address) {
  const uint32_t page = (address - machine.tcm) / PAGE;
  for (const struct flight *f = flights; f < flights + MACHINE_THREADS; f++)
    if (f->n && page - (uint32_t)f->first < (uint32_t)f->pages) machine_fault("a destination of DMA is touched before it is waited for");
  machine_fault("memory that is not there");
}

void machine_open(void *tcm) {
  machine.tcm = (uint32_t)(uintptr_t)tcm;
  rt_on_segmentation(segmentation);
}

static void fill(void *p, uint32_t n) {
  V *v = p;
  for (const V poison = splat_b(POISON); n >= sizeof(V); n -= sizeof(V)) *v++ = poison;
}

void machine_hide(struct rt_count from) {
  const struct rt_count took = rt_since(from, rt_count());
  machine.hidden.packets += took.packets, machine.hidden.instructions += took.instructions, machine.hidden.vector += took.vector;
}

void machine_poison(void) { fill((void *)(uintptr_t)machine.tcm, MACHINE_TCM); }

void machine_idle(void) {
  for (const struct flight *f = flights; f < flights + MACHINE_THREADS; f++)
    if (f->n) machine_fault("a request ends with a transfer under way");
}

static uint32_t length(const struct transfer *t) { return t->control & ((1u << 24) - 1); }
static void *pointer(uint32_t address) { return (void *)(uintptr_t)address; }
static void protect(const struct flight *f, int on) {
  if (f->pages) rt_protect(pointer(machine.tcm + (uint32_t)f->first * PAGE), (uint32_t)f->pages * PAGE, on);
}

void dma_start(struct transfer *t, int n) {
  const struct rt_count from = rt_count();
  struct flight *f = own();
  if (f->n) machine_fault("dmstart while transfers are under way");
  uint32_t lo = ~0u, hi = 0;
  for (int i = 0; i < n; i++) {
    const uint32_t bytes = length(t + i), src = t[i].src, dst = t[i].dst;
    if (!bytes || (t[i].control & (uint32_t)DMA_DONE)) machine_fault("a descriptor without bytes, or that is done");
    if (((src | dst | bytes) & 127)) machine_fault("DMA of addresses or bytes that are no multiples of 128");
    if ((t[i].control & DMA_SRC_BYPASS) && machine_in_tcm(pointer(src), bytes)) machine_fault("a bypass for a source that is TCM");
    t[i].next = i + 1 < n ? (uint32_t)(uintptr_t)(t + i + 1) : 0;
    machine.counts.moved += bytes;
    lo = dst < lo ? dst : lo, hi = dst + bytes > hi ? dst + bytes : hi;
  }
  f->t = t, f->n = n, f->pages = 0;
  machine.counts.transfers += (uint64_t)n;
  if ((uint64_t)n > machine.counts.flying) machine.counts.flying = (uint64_t)n;
  // A buffer that begins with a page has its pages for itself; others are made nonsense.
  if (machine_in_tcm(pointer(lo), hi - lo) && (lo - machine.tcm) % PAGE == 0) {
    f->first = (int)((lo - machine.tcm) / PAGE), f->pages = (int)((hi - lo + PAGE - 1) / PAGE);
    protect(f, 1);
  } else {
    for (int i = 0; i < n; i++)
      if (machine_in_tcm(pointer(t[i].dst), length(t + i))) fill(pointer(t[i].dst), length(t + i));
  }
  machine_hide(from);
}

void dma_wait(const struct transfer *t, int n) {
  const struct rt_count from = rt_count();
  struct flight *f = own();
  if (f->t != t || f->n != n) machine_fault("a wait for transfers that are not under way");
  protect(f, 0);
  for (int i = 0; i < n; i++) {
    V *d = pointer(t[i].dst);
    const V *s = pointer(t[i].src);
    for (uint32_t left = length(t + i); left; left -= sizeof(V)) *d++ = *s++;
    ((struct transfer *)t)[i].control |= (uint32_t)DMA_DONE;
  }
  f->n = 0;
  machine_hide(from);
}
