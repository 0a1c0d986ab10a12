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

struct memory {
  uint8_t *base;
  uint64_t size; // a multiple of ALIGN
};

// run_packet checks a packet, runs it and returns its status. Nothing outside the
// memory is read or written, whatever the packet says.
uint32_t run_packet(const struct packet *p, const struct memory *m);
