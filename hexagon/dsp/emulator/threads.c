// Threads of the emulated DSP, by Linux's.
#include "../device/platform.h"
#include "machine.h"

enum { VECTORS = 6 };

static uint32_t threads[THREADS]; // 0: it has ended

int platform_vectors(void) { return VECTORS; }

int platform_thread(int i, void (*f)(void *), void *p, uint8_t stack[STACK_BYTES]) { return rt_thread(f, p, stack, STACK_BYTES, &threads[i]); }

void platform_join(int i) {
  for (uint32_t id; (id = __atomic_load_n(&threads[i], __ATOMIC_ACQUIRE));) rt_wait(&threads[i], id);
}

int platform_lock_vectors(void) { return 0; }
void platform_unlock_vectors(void) {}
void platform_lock_tiles(void) { machine_tiles(1); }
void platform_unlock_tiles(void) { machine_tiles(0); }
void platform_wait(uint32_t *word, uint32_t value) { rt_wait(word, value); }
void platform_wake(uint32_t *word) { rt_wake(word); }
