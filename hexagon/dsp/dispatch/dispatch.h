// Packets: their wire form, and the one place where they are checked and run. Both
// builds, emulator and device, use it. hexagon/device/protocol.go is the contract.
#pragma once
#include <stdint.h>

enum {
  OP_PING = 1, OP_COPY, OP_PRECOMPUTE, OP_GEMV, OP_DEQUANT, OP_VLUT16, OP_TILE_MUL, OP_EXP_TABLE, OP_SOFTMAX, OP_COLLECT,
  OP_RMS_NORM, OP_QUANTIZE, OP_SCALE, OP_ADD, OP_ROPE, OP_GLU, OP_TO_TILES, OP_FROM_TILES, OP_FOLD,
  OP_SOFT_CAP, OP_LAYER_NORM, OP_ROWS_TO_TILES, OP_TILES_TO_ROWS,
  OP_MUL, OP_CONV,
  OP_BYTE_TILES, OP_TILE_MUL_BYTES,
  OP_GATES, OP_DELTA,
  STATUS_OK = 0, STATUS_OP, STATUS_SIZE, STATUS_RANGE, STATUS_NUMBER,
  ALIGN = 128, TILE_BYTES = 2048, LANES_BYTES = 1024, PLANES = 3, PAGE = 1 << 16, TCM_BYTES = 8 << 20, MAX_DIM = 1 << 17, MAX_WORKERS = 8,
  MAPPING_BITS = 30, MAPPINGS = 4, // offsets of a mapping, and how many there are at most
  COLUMNS_BYTES = 256, BYTE_COLUMNS_BYTES = 512, MAX_TILES = TCM_BYTES / TILE_BYTES, EXP_TABLE_BYTES = 1 << 16, STATE_BYTES = 24,
  MAX_B = 255, MAX_TAPS = 8, MAX_ROWS = 1 << 10, MAX_STRIDE = 1 << 22, BYTE_ZERO = 128,
  SHARD_PACKETS = 1024, // which are worth a worker: a barrier is about as long
};

struct packet {
  uint32_t op, args[15];
};

// A request is a header and count packets. Where it begins a run, TCM holds nothing that
// means anything; else what the request before it left. An answer says how many packets
// went well, and the status of the one behind those.
struct request {
  uint32_t magic, number, count, begins;
};

struct answer {
  uint32_t magic, number, done, status;
  // Counted in the emulator: see device.Counts.
  uint64_t packets, instructions, vector, transfers, moved, flying, gathers, exposed, weights[2], sums[2], longest, barriers, products, queued, hides[2];
};

enum { MAGIC = 0x4c555452 };

// The operands of OP_TILE_MUL, and of OP_TILE_MUL_BYTES, which has one run and no scale.
struct tile_mul {
  uint16_t *out;
  const uint16_t *act0, *wgt0;
  int k0;
  const uint16_t *act1, *wgt1;
  int k1, rows, cols;
  uint16_t scale;    // fp16
  uint16_t bytes;    // whether tiles are of bytes
  uint32_t *columns; // 64 words of TCM, for the unit's scales of columns; for those of planes 32 each
};

// A tile unit computes products in the order in which they are pushed, beside what the caller does. push
// returns the number of a product, and may wait for an older one; wait waits for a product and all before it.
struct tile_unit {
  uint32_t (*push)(const struct tile_mul *t);
  void (*wait)(uint32_t number);
};

// What a product writes and reads, in bytes: tiles of out, and of a run of k tiles.
static inline uint32_t out_bytes(const struct tile_mul *t) { return (uint32_t)(t->rows * t->cols) * TILE_BYTES * (t->bytes ? PLANES : 1); }
static inline uint32_t act_bytes(const struct tile_mul *t, int k) { return (uint32_t)(t->rows * k) * TILE_BYTES; }
static inline uint32_t wgt_bytes(const struct tile_mul *t, int k) { return (uint32_t)(t->cols * k) * (t->bytes ? LANES_BYTES : TILE_BYTES); }

struct operation;
struct memory {
  uint8_t *base[MAPPINGS]; // of each mapping where it would begin if its first offset were 0
  uint8_t *tcm;            // base[0] where the host sees it
  uint64_t size;           // of all mappings; a multiple of ALIGN
  const struct tile_unit *tiles; // 0 where there is none
  int workers;     // threads with vectors, this one among them; at most MAX_WORKERS
  uint32_t enough; // packets that are worth a shard
  int ahead;       // whether a product by lookups has the next one's first tiles brought
  void (*share)(const struct operation *o); // has all shards run, one a worker, and waits; with one worker never called
};

// mapping is how many bytes of a memory its mapping i has.
static inline uint32_t mapping(uint64_t size, int i) {
  const uint64_t from = (uint64_t)i << MAPPING_BITS, rest = size > from ? size - from : 0;
  return rest >> MAPPING_BITS ? 1u << MAPPING_BITS : (uint32_t)rest;
}

static inline void *in_tcm(const struct memory *m, uint32_t offset) { return m->tcm + offset; }
static inline void *at(const struct memory *m, uint32_t offset) { return (offset < TCM_BYTES ? m->tcm : m->base[offset >> MAPPING_BITS]) + offset; }

// An operation is cut into shards of whole units: its rows, tiles, heads or vectors. What one
// shard writes no other reads or writes.
struct operation {
  const struct packet *packet;
  const struct memory *memory;
  uint32_t units, each; // at least so many a shard
  int shards;
  const struct operation *next; // of an OP_GEMV: the one whose first tiles it has brought; 0: none
};

// cut says into how many shards the workers of a memory take a packet that has been checked.
struct operation cut(const struct packet *p, const struct memory *m);

// run_shard computes one of an operation's shards, in whichever order and beside whichever others.
void run_shard(const struct operation *o, int shard);

static inline int of_tile_unit(const struct packet *p) { return p->op == OP_TILE_MUL || p->op == OP_TILE_MUL_BYTES; }
static inline uint32_t gemv_strips(const uint32_t *args) { return args[13] & 0xffff; }
static inline uint32_t gemv_shares(const uint32_t *args) { return (args[13] >> 16) + 1; }
static inline uint32_t dequant_strips(const uint32_t *a) { return a[12] + 1; }
static inline int gemv_bytes(const uint32_t *a) { return a[8] == 8 || (a[8] == 4 && a[10] == 0); } // codes stand in bytes
static inline int group_shift(uint32_t group) { return group == 32 ? 5 : group == 64 ? 6 : 7; }
static inline int dequant_bytes(const uint32_t *a) { return a[9] == 8 || (a[9] == 4 && a[11] == 1); }
static inline uint32_t tiles_of(uint32_t rows) { return (rows + 31) / 32; } // columns of tiles
static inline uint64_t pages(uint64_t n) { return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1); }

// table is what OP_PRECOMPUTE makes of k activations, and table_row that with their sums behind it.
static inline uint32_t table(uint32_t k, int bytes) { return (bytes ? 2 : 8) * k; }
static inline uint32_t table_row(uint32_t k, int bytes) { return table(k, bytes) + ((k / 8 + ALIGN - 1) & ~(uint32_t)(ALIGN - 1)); }

// gemv_buffer is what OP_GEMV's arguments make of a tile's codes, scales and offsets.
static inline uint64_t gemv_buffer(const uint32_t *a) {
  const uint64_t weights = (uint64_t)gemv_strips(a) * 128 * a[14];
  return pages(weights / 8 * a[8] + (a[9] == a[7] ? 0 : (weights >> group_shift(a[9])) * (a[5] ? 4 : 2)));
}

// run_packet checks a packet, runs it or begins it, and returns its status. Packets up to end come after it. Nothing outside the
// memory is read or written, whatever the packet says. finish_packets waits for what packets have begun:
// copies, tiles of a product that has not come, and the tile unit's products.
uint32_t run_packet(const struct packet *p, const struct packet *end, const struct memory *m);
void finish_packets(const struct memory *m);
