// Packets: their wire form, and the one place where they are checked and run. Both
// builds, emulator and device, use it. hexagon/device/protocol.go is the contract.
#pragma once
#include <stdint.h>

enum {
  OP_PING = 1, OP_COPY, OP_PRECOMPUTE, OP_GEMV, OP_DEQUANT, OP_VLUT16, OP_TILE_MUL, OP_EXP_TABLE, OP_SOFTMAX,
  STATUS_OK = 0, STATUS_OP, STATUS_SIZE, STATUS_RANGE, STATUS_NUMBER,
  ALIGN = 128, TCM_BYTES = 8 << 20, MAX_DIM = 1 << 17,
};

struct packet {
  uint32_t op, args[15];
};

// A request is a header and count packets; an answer says how many of them went well,
// and the status of the one behind those.
struct request {
  uint32_t magic, number, count, zero;
};

struct answer {
  uint32_t magic, number, done, status;
  uint64_t packets, instructions, vector; // counted in the emulator
};

enum { MAGIC = 0x4c555452 };

// The operands of OP_TILE_MUL.
struct tile_mul {
  uint16_t *out;
  const uint16_t *act0, *wgt0;
  int k0;
  const uint16_t *act1, *wgt1;
  int k1, rows, cols;
  uint32_t scale; // bits of a float
};

struct memory {
  uint8_t *base, *tcm; // tcm is base where the host sees it
  uint64_t size;       // of base; a multiple of ALIGN
  void (*tile_mul)(const struct tile_mul *); // 0 where there is no tile unit
  void (*copy)(void *dst, const void *src, uint32_t n); // 0: the vector unit copies
};

// run_packet checks a packet, runs it and returns its status. Nothing outside the
// memory is read or written, whatever the packet says.
uint32_t run_packet(const struct packet *p, const struct memory *m);
