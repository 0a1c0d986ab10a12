// User DMA of a chip, by its instructions. UNTESTED: qemu has no DMA.
#include "../kernels/machine.h"

enum { STATUS = 3, FAILED = 2 }; // of dmwait

void dma_start(struct transfer *t, int n) {
  for (int i = 0; i < n; i++) {
    t[i].next = i + 1 < n ? (uint32_t)(uintptr_t)(t + i + 1) : 0;
    // The engine is another master: what the thread has stored must be seen before it reads.
    __asm__ volatile("release(%0):at" ::"r"(t + i) : "memory");
  }
  __asm__ volatile("dmstart(%0)" ::"r"(t) : "memory");
}

void dma_wait(const struct transfer *t, int n) {
  const volatile struct transfer *last = t + n - 1;
  uint32_t status;
  do {
    __asm__ volatile("%0 = dmwait" : "=r"(status)::"memory");
    if ((status & STATUS) == FAILED) __builtin_trap(); // the host sees the session's end
  } while (!(last->control & (uint32_t)DMA_DONE));
}
