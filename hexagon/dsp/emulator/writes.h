// What the operations that are cut write.
#pragma once
#include "../dispatch/dispatch.h"

struct write {
  uint8_t *at;
  uint32_t n;    // bytes; a multiple of 4
  uint32_t unit; // 128: vectors; 4: words of the scalar unit
  int kept;      // it may be read, too
};

enum { MOST_WRITTEN = 3 };
int writes(const struct operation *o, struct write w[MOST_WRITTEN]); // how many
