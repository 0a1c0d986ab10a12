// User DMA of a chip, by its instructions. UNTESTED: qemu has no DMA. A thread has an engine of its own.
#include "../kernels/machine.h"

enum { STATUS = 3, FAILED = 2 }; // of dmpoll

void dma_link(int engine, struct transfer *last, struct transfer *t) {
  (void)engine;
  // The engine is another master: what the thread has stored must be seen before it reads.
  __asm__ volatile("release(%0):at" ::"r"(t) : "memory");
  if (last) __asm__ volatile("dmlink(%0, %1)" ::"r"(last), "r"(t) : "memory");
  else __asm__ volatile("dmstart(%0)" ::"r"(t) : "memory");
}

void dma_finish(int engine, const struct transfer *t) {
  (void)engine;
  const volatile struct transfer *now = t;
  while (!(now->control & (uint32_t)DMA_DONE)) {
    uint32_t status;
    __asm__ volatile("%0 = dmpoll" : "=r"(status)::"memory");
    if ((status & STATUS) == FAILED) __builtin_trap(); // the host sees the session's end
  }
  __asm__ volatile("" ::: "memory"); // nothing that the thread reads behind this comes before it
}
