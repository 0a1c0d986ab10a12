// Packets: their wire form, and the one place where they are checked and run. Both
// builds, emulator and device, use it. hexagon/device/protocol.go is the contract.
#pragma once
#include <stdint.h>

enum {
  OP_PING = 1, OP_COPY, OP_PRECOMPUTE, OP_GEMV, OP_DEQUANT, OP_VLUT16, OP_TILE_MUL, OP_EXP_TABLE, OP_SOFTMAX, OP_COLLECT,
  OP_RMS_NORM, OP_QUANTIZE, OP_SCALE, OP_ADD, OP_ROPE, OP_GLU, OP_TO_TILES, OP_FROM_TILES, OP_FOLD,
  STATUS_OK = 0, STATUS_OP, STATUS_SIZE, STATUS_RANGE, STATUS_NUMBER,
  ALIGN = 128, TILE_BYTES = 2048, PAGE = 1 << 16, TCM_BYTES = 8 << 20, MAX_DIM = 1 << 17,
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
  uint64_t packets, instructions, vector, transfers, moved, flying, gathers, exposed, weights[2], sums[2];
};

enum { MAGIC = 0x4c555452 };

// The operands of OP_TILE_MUL.
struct tile_mul {
  uint16_t *out;
  const uint16_t *act0, *wgt0;
  int k0;
  const uint16_t *act1, *wgt1;
  int k1, rows, cols;
  uint16_t scale;    // fp16
  uint32_t *columns; // 64 words of TCM, for the unit's scales of columns
};

struct memory {
  uint8_t *base, *tcm; // tcm is base where the host sees it
  uint64_t size;       // of base; a multiple of ALIGN
  void (*tile_mul)(const struct tile_mul *); // 0 where there is no tile unit
};

// run_packet checks a packet, runs it and returns its status. Nothing outside the
// memory is read or written, whatever the packet says.
uint32_t run_packet(const struct packet *p, const struct memory *m);
