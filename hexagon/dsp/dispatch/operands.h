// What a packet reads and writes. operations.c is generated, as the checks in Go are, from the table in
// hexagon/device/operands: nothing else says where an operation's operands lie.
#pragma once
#include "../kernels/kernels.h"
#include "operations.h"

// Rules of an operand; the other bits are its alignment.
enum {
  WRITES = 1, // what has it not is only read
  IN_TCM = 2,
  IN_DDR = 4,
  APART = 8,       // it shares no byte with the first operand
  KEEPS = 1 << 29, // with WRITES: what was there matters
  WORDS = 1 << 28, // shards write words of it, not vectors
  MAPPED = 1 << 27, // it lies in any number of mappings
#define IN_ORDER (1u << 31) // of two transfers, or two products, that have it the later one does not wait
};

struct span {
  uint32_t from, end, rule;
};

// Operands have the numbers of the table; one that a packet has not is empty.
struct operands {
  uint64_t size; // of the memory
  uint32_t status;
  int n;
  struct span span[8];
};

// operands_of lists a packet's in a memory of so many bytes, and returns its status. Where that says that counts or
// numbers are wrong, there is no list. It reads nothing but the packet.
uint32_t operands_of(const struct packet *p, uint64_t size, struct operands *o);


#ifdef LUTRA_STRICT
extern uint32_t blind; // an operation, times 16, and an operand of it that it does not wait for, as if it were not in the table
#endif

static inline int overlap(const struct span *a, const struct span *b) { return a->from < b->end && b->from < a->end; }

// operand adds one of n bytes, and holds it against its rule, most of which a compiler knows.
static inline __attribute__((always_inline)) void operand(struct operands *o, int i, uint32_t from, uint64_t n, uint32_t rule) {
  const uint64_t end = from + n;
  const uint32_t align = rule & (uint32_t)(MAPPED - 1) & ~15u;
  while (o->n < i) o->span[o->n++] = (struct span){0, 0, 0};
  const struct span s = {from, end < ~0u ? (uint32_t)end : ~0u, rule};
  o->span[o->n++] = s;
  if ((from & (align - 1)) || end > o->size || (!(rule & (MAPPED | IN_TCM)) && (from ^ (uint32_t)(end - 1)) >> MAPPING_BITS) || (from < TCM_BYTES ? end > TCM_BYTES || (rule & IN_DDR) : rule & IN_TCM) || ((rule & APART) && overlap(&s, o->span)))
    o->status = STATUS_RANGE;
}

// gemv_sums is the first part of its scratch, gemv_scratch all of it.
static inline uint64_t gemv_sums(const uint32_t *a) { return pages((uint64_t)4 * a[6] * a[3]); }
static inline uint64_t gemv_scratch(const uint32_t *a) { return gemv_sums(a) + gemv_shares(a) * GEMV_BUFFERS * gemv_buffer(a); }
static inline uint64_t groups(uint64_t n, uint64_t group) { return n >> group_shift((uint32_t)group); }
static inline uint64_t max(uint64_t a, uint64_t b) { return a > b ? a : b; }
