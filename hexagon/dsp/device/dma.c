// OP_COPY by user DMA, which moves weights to TCM without passing the vector unit's
// registers. UNTESTED: qemu has no DMA. It waits for each copy; transfers beside
// computation want the host's packets in the pipeline's order and a queue here.
#include "../kernels/hvx.h"
#include "dma.h"

struct descriptor { // linear, 16 bytes
  uint32_t next, control, src, dst;
};

enum { LARGEST = 1 << 23, DONE = (int)(1u << 31) };

void dma_copy(void *dst, const void *src, uint32_t n) {
  static volatile struct descriptor d ALIGNED;
  uint32_t to = (uint32_t)(uintptr_t)dst, from = (uint32_t)(uintptr_t)src;
  while (n) {
    const uint32_t part = n < LARGEST ? n : LARGEST; // the length has 24 bits
    d.next = 0, d.src = from, d.dst = to, d.control = part;
    __asm__ volatile("dmstart(%0)" ::"r"(&d) : "memory");
    uint32_t left;
    do __asm__ volatile("%0 = dmwait" : "=r"(left)::"memory");
    while (!(d.control & (uint32_t)DONE));
    to += part, from += part, n -= part;
  }
}
