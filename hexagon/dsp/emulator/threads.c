// Threads of the emulated DSP, by Linux's.
#include "../device/platform.h"
#include "machine.h"
#include "runtime.h"

enum { VECTORS = 6 };

static struct {
  uint32_t id; // 0: it has ended
  const uint8_t *stack;
} threads[MAX_WORKERS];

// number is which thread runs: the one whose stack this is.
static int number(void) {
  const uint8_t *here = __builtin_frame_address(0);
  for (int i = 1; i < MAX_WORKERS; i++)
    if (here >= threads[i].stack && here < threads[i].stack + STACK_BYTES) return i;
  return 0;
}

int platform_vectors(void) { return VECTORS; }

int platform_thread(int i, void (*f)(void *), void *p, uint8_t stack[STACK_BYTES]) {
  machine.thread = number;
  threads[i].stack = stack;
  return rt_thread(f, p, stack, STACK_BYTES, &threads[i].id);
}

void platform_join(int i) {
  for (uint32_t id; (id = __atomic_load_n(&threads[i].id, __ATOMIC_ACQUIRE));) rt_wait(&threads[i].id, id);
}

int platform_lock_vectors(void) { return 0; }
void platform_unlock_vectors(void) {}
void platform_wait(uint32_t *word, uint32_t value) { rt_wait(word, value); }
void platform_wake(uint32_t *word) { rt_wake(word); }
