// How threads of a session wait for each other: a word is polled for a while, and then slept on.
#pragma once
#include <stdatomic.h>
#include "platform.h"

enum { POLLS = 256 };

static inline void rest(void) {
#ifndef LUTRA_EMULATED
  __asm__ volatile("pause(#32)");
#endif
}

// changed waits until a word has another value, and returns that.
static inline uint32_t changed(_Atomic uint32_t *word, uint32_t value) {
  uint32_t now;
  for (int i = 0; (now = atomic_load_explicit(word, memory_order_acquire)) == value; i++)
    if (i < POLLS) rest();
    else platform_wait((uint32_t *)word, value);
  return now;
}

static inline void say(_Atomic uint32_t *word, uint32_t value) {
  atomic_store_explicit(word, value, memory_order_release);
  platform_wake((uint32_t *)word);
}
