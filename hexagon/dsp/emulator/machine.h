// The memory of the emulated machine: what a chip does not forgive ends the program with a
// word on stderr. It also counts what packets of instructions do not show.
#pragma once
#include <stdint.h>
#include "runtime.h"

enum {
  MACHINE_TCM = 8 << 20,
  MACHINE_LATENCY = 24, // packets from a gather to its numbers (TTS §5.2.1: 24 to 48)
  MACHINE_THREADS = 8,
  MACHINE_RECENT = 1024, // lines of TCM, in a row, whose gathers' ages are known
};

struct machine_counts {
  uint64_t transfers, moved, flying; // by DMA, their bytes, the most of an engine under way at once
  uint64_t gathers, exposed;         // packets that waited for a gather
  uint64_t weights[2], sums[2];      // lines of 128 bytes that OpGEMV reads and spills: in DDR, in TCM
  uint64_t beside, barriers;         // packets of shards beside each operation's longest; operations that were cut
  uint64_t products, queued;         // of the tile unit, the most in its queue at once
  uint64_t hides[2];                 // packets between a begin of what is under way and the wait for it: DMA of the first engine, the tile unit
};

extern struct machine {
  uint32_t tcm; // where it begins
  uint32_t tiles; // whether the tile unit is locked
  uint32_t issued[MACHINE_RECENT];
  struct machine_counts counts;
  struct rt_count hidden; // what the machine itself took, which a chip does not
  const void *(*memory)(const void *p); // where there are caches, what memory has of what they show at p
} machine;

// A claim is what an engine of DMA or the tile unit's queue has until it is waited for: where it
// writes nobody may read or write, and what it reads nobody may write. Whole pages of TCM, of 64 KiB, become
// inaccessible; other memory is made nonsense, which must still be there in the end, and what is read the same.
enum { MACHINE_DMA, MACHINE_TILES, MACHINE_READS = 5 };
struct machine_claim {
  int of;
  uint8_t *dst;
  uint32_t bytes, own; // own: the rest of its pages is its, too
  struct machine_read {
    const void *at;
    uint32_t bytes, sum;
  } reads[MACHINE_READS]; // up to the first of no bytes
};
void machine_claim(struct machine_claim *c);
void machine_release(struct machine_claim *c);
// machine_queues says how many products the tile unit's queue has at a count of packets.
void machine_queues(uint32_t n, uint32_t packets);

// machine_open says where TCM is.
void machine_open(void *tcm);
// machine_poison makes what TCM holds meaningless: between requests others may have it.
void machine_poison(void);
// machine_tiles says that the tile unit is locked for a thread, or given back: what uses it otherwise, locks it twice or
// gives it back twice ends the program.
void machine_tiles(int locked);
// machine_idle ends the program if a transfer, a product or a gather is under way, or the tile unit is not given back.
void machine_idle(void);
// machine_hide adds what has been counted since from to what a chip does not take.
void machine_hide(struct rt_count from);
void machine_fault(const char *what) __attribute__((noreturn, cold));

static inline __attribute__((always_inline)) int machine_in_tcm(const void *p, uint32_t n) {
  const uint32_t at = (uint32_t)(uintptr_t)p - machine.tcm;
  return at < MACHINE_TCM && n <= MACHINE_TCM - at;
}

static inline __attribute__((always_inline)) void machine_gather(const void *dst, const void *table) {
  if (!machine_in_tcm(dst, 128)) machine_fault("vgather to DDR");
  if (!machine_in_tcm(table, 65536)) machine_fault("vgather from DDR");
  if ((uintptr_t)dst & 127) machine_fault("vgather to an address that is no multiple of 128");
  machine.counts.gathers++;
  machine.issued[(uintptr_t)dst / 128 % MACHINE_RECENT] = rt_packets();
}

static inline __attribute__((always_inline)) void machine_gathered(const void *dst) {
  const uint32_t age = rt_packets() - machine.issued[(uintptr_t)dst / 128 % MACHINE_RECENT];
  if (age < MACHINE_LATENCY) machine.counts.exposed += MACHINE_LATENCY - age;
}

#ifdef LUTRA_STRICT
// Of a program that counts nothing: a gather's numbers are kept elsewhere, and its destination is nonsense, until it is waited for.
void *machine_late(void *dst);
void machine_arrive(const void *dst);
#endif

// machine_gemv counts lines of weights that are read, and of sums that are read and written.
static inline void machine_gemv(const void *weights, uint32_t lines, const void *sums, uint32_t spilled) {
  machine.counts.weights[machine_in_tcm(weights, 128 * lines)] += lines;
  machine.counts.sums[machine_in_tcm(sums, 128 * spilled)] += spilled;
}
