// The tile unit has a thread of its own, which takes products from a ring: one thread pushes, one takes.
// So vector threads make the next tiles while it multiplies.
#include "queue.h"
#include "tile.h"
#include "wait.h"

enum { RING = 16, REST = 0, ENDS = -1 }; // a power of two; rows of what is no product

static struct {
  _Atomic uint32_t pushed, done; // how many, ever
  struct tile_mul ring[RING];
  int open, used; // whether the thread has the unit once it has done all
} queue;

static uint8_t stack[STACK_BYTES] __attribute__((aligned(128)));

static void work(void *p) {
  uint32_t n = (uint32_t)(uintptr_t)p;
  for (int locked = 0, ends = 0; !ends; say(&queue.done, ++n)) {
    if (atomic_load_explicit(&queue.pushed, memory_order_acquire) == n) changed(&queue.pushed, n);
    const struct tile_mul *t = &queue.ring[n % RING];
    ends = t->rows == ENDS;
    if (locked != (t->rows > 0)) (locked ^= 1) ? platform_lock_tiles() : platform_unlock_tiles();
    if (locked) tile_mul(t);
  }
}

static void wait(uint32_t number) {
  uint32_t done = atomic_load_explicit(&queue.done, memory_order_acquire);
  while ((int32_t)(number - done) > 0) done = changed(&queue.done, done);
}

static uint32_t push(const struct tile_mul *t) {
  const uint32_t n = atomic_load_explicit(&queue.pushed, memory_order_relaxed);
  wait(n + 1 - RING);
  queue.ring[n % RING] = *t;
  queue.used = t->rows > 0;
  say(&queue.pushed, n + 1);
  return n + 1;
}

const struct tile_unit *queue_open(void) {
  static const struct tile_unit unit = {push, wait};
  queue.used = 0;
  queue.open = !platform_thread(TILE_THREAD, work, (void *)(uintptr_t)atomic_load_explicit(&queue.pushed, memory_order_relaxed), stack);
  return queue.open ? &unit : 0;
}

void queue_rest(void) {
  if (queue.used) wait(push(&(struct tile_mul){.rows = REST}));
}

void queue_close(void) {
  if (!queue.open) return;
  push(&(struct tile_mul){.rows = ENDS});
  platform_join(TILE_THREAD);
  queue.open = 0;
}
