// What of the machine tells TCM from DDR, or runs beside the thread: gathers and DMA. A
// chip has instructions for them, and computes nonsense, or hangs, where they are misused.
// In the emulator's build (LUTRA_EMULATED) emulator/machine.c ends the program there, and
// counts.
#pragma once
#include "hvx.h"

#ifdef LUTRA_EMULATED
#include "../emulator/machine.h"
#define EMULATED(call) call
#else
#define EMULATED(call)
#endif

// gather sets the 64 halfwords at dst to those of the table, of 64 KiB, at offsets in
// bytes. dst and table lie in TCM. The numbers come later: gathered waits for them, so
// what lies between the two is not lost.
INLINE void gather(V *dst, const uint16_t *table, V offsets) {
  EMULATED(machine_gather(dst, table);)
  Q6_vgather_ARMVh(dst, (int)(uintptr_t)table, 65535, offsets);
}
INLINE V gathered(const V *dst) {
  EMULATED(machine_gathered(dst);)
  return *(const volatile V *)dst;
}

// A transfer is a linear descriptor of user DMA.
struct transfer {
  uint32_t next, control, src, dst;
} __attribute__((aligned(16)));

enum {
  DMA_LARGEST = 1 << 23,        // bytes of a transfer: the length has 24 bits
  DMA_SRC_BYPASS = 1 << 29,     // reads past the caches: of what the DSP never writes
  DMA_ORDERED = 1 << 30,        // begins when the one before it has ended
  DMA_DONE = (int)(1u << 31),
};

INLINE struct transfer transfer(void *dst, const void *src, uint32_t n, uint32_t flags) {
  return (struct transfer){0, n | flags | DMA_ORDERED, (uint32_t)(uintptr_t)src, (uint32_t)(uintptr_t)dst};
}

// dma_start begins n transfers, one after the other; none may be under way. dma_wait waits
// for the end of them: before it nobody may touch where they write, or write where they read.
void dma_start(struct transfer *t, int n);
void dma_wait(const struct transfer *t, int n);

// dma_copy copies n bytes and waits.
void dma_copy(void *dst, const void *src, uint32_t n);
