// How operations are cut. A shard has whole vectors of 128 bytes of what it writes, but for
// words that the scalar unit stores one by one.
#pragma once
#include "dispatch.h"

enum {
  TABLES_UNIT = 1024, // columns of a row of OP_PRECOMPUTE: a vector of sums
  EXP_UNIT = 64,      // numbers of OP_EXP_TABLE: a vector
  SOFTMAX_UNIT = 1,   // pairs of rows
};

// tables_units is how many units of OP_PRECOMPUTE a row has.
static inline uint32_t tables_units(const uint32_t *args) { return (args[3] + TABLES_UNIT - 1) / TABLES_UNIT; }

// first_of is the first unit of a shard; its last is before the next one's first.
static inline uint32_t first_of(const struct operation *o, int shard) {
  const uint32_t more = o->units - (uint32_t)o->shards * o->each, i = (uint32_t)shard;
  return i * o->each + (i < more ? i : more);
}
