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
#ifdef LUTRA_STRICT
  dst = machine_late(dst);
#endif
  Q6_vgather_ARMVh(dst, (int)(uintptr_t)table, 65535, offsets);
}
INLINE V gathered(const V *dst) {
  EMULATED(machine_gathered(dst);)
#ifdef LUTRA_STRICT
  machine_arrive(dst);
#endif
  return *(const volatile V *)dst;
}

// A transfer is a linear descriptor of user DMA.
struct transfer {
  uint32_t next, control, src, dst;
} __attribute__((aligned(16)));

enum {
  DMA_ENGINES = 8,        // each thread with vectors has one
  DMA_RING = 512,         // transfers of one that are under way at once, at most; a power of two
  DMA_LARGEST = 1 << 23,  // bytes of a transfer: the length has 24 bits
  DMA_SRC_BYPASS = 1 << 29, // reads past the caches: of what the DSP never writes
  DMA_ORDERED = 1 << 30,  // begins when the one before it has ended
  DMA_DONE = (int)(1u << 31),
#ifdef LUTRA_EMULATED
  DMA_OWN_PAGES = 1 << 24, // nothing else lies in the destination's pages: the machine has nobody touch them
#else
  DMA_OWN_PAGES = 0,
#endif
};

INLINE struct transfer transfer(void *dst, const void *src, uint32_t n, uint32_t flags) {
  return (struct transfer){0, n | flags | DMA_ORDERED, (uint32_t)(uintptr_t)src, (uint32_t)(uintptr_t)dst};
}

// What a machine has: dma_link begins a transfer behind last, the last one of the thread's engine
// that is under way, or 0 where none is; dma_finish waits for the end of one, and so of those before it.
void dma_link(int engine, struct transfer *last, struct transfer *t);
void dma_finish(int engine, const struct transfer *t);

// dma_push begins to copy n bytes behind what the thread's engine has under way, and returns the
// number of that transfer, to wait for. Where the ring is full it waits for the oldest. dma_wait waits for the
// end of a transfer and of all before it: until then nobody may touch where they write, or
// write where they read.
uint32_t dma_push(int engine, void *dst, const void *src, uint32_t n, uint32_t flags);
void dma_wait(int engine, uint32_t number);

// dma_copy copies n bytes and waits.
void dma_copy(int engine, void *dst, const void *src, uint32_t n);
