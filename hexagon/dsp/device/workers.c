// Threads that wait for an operation, run a shard of it each, and say when they have. A worker
// polls for a while before it sleeps: a step is hundreds of operations with little between them.
#include "workers.h"
#include "wait.h"

// A turn is a number that grows by TURN, and how many shards it has, or ENDS. A worker that has no
// shard of it touches nothing else, for it is not waited for.
enum { TURN = 16, ENDS = TURN - 1 };

static struct {
  _Atomic uint32_t turn, left, ready[MAX_WORKERS]; // shards that run; of a worker: LOCKED or NOT
  const struct operation *operation;
  int workers;
} pool = {.workers = 1};
enum { LOCKED = 1, NOT };

static uint8_t stacks[MAX_WORKERS][STACK_BYTES] __attribute__((aligned(128)));

static void work(void *p) {
  const uint32_t me = (uint32_t)(uintptr_t)p;
  uint32_t turn = atomic_load_explicit(&pool.turn, memory_order_acquire);
  const int locked = platform_lock_vectors() == 0;
  say(&pool.ready[me], locked ? LOCKED : NOT);
  while (locked && ((turn = changed(&pool.turn, turn)) & (TURN - 1)) != ENDS) {
    if (me >= (turn & (TURN - 1))) continue;
    run_shard(pool.operation, (int)me);
    if (atomic_fetch_sub_explicit(&pool.left, 1, memory_order_release) == 1) platform_wake((uint32_t *)&pool.left);
  }
  if (locked) platform_unlock_vectors();
}

// begin has workers begin a turn.
static void begin(uint32_t shards) {
  const uint32_t before = atomic_load_explicit(&pool.turn, memory_order_relaxed);
  say(&pool.turn, (before & ~(uint32_t)(TURN - 1)) + TURN + shards);
}

int workers_open(int most) {
  const int vectors = platform_vectors();
  most = most < vectors ? most : vectors;
  most = most < MAX_WORKERS ? most : MAX_WORKERS;
  begin(0);
  for (pool.workers = 1; pool.workers < most; pool.workers++) {
    const int i = pool.workers;
    atomic_store_explicit(&pool.ready[i], 0, memory_order_relaxed);
    if (platform_thread(i, work, (void *)(uintptr_t)i, stacks[i])) break;
    if (changed(&pool.ready[i], 0) == LOCKED) continue;
    platform_join(i); // others have the vectors
    break;
  }
  return pool.workers;
}

void workers_share(const struct operation *o) {
  pool.operation = o;
  atomic_store_explicit(&pool.left, (uint32_t)o->shards - 1, memory_order_relaxed);
  begin((uint32_t)o->shards);
  run_shard(o, 0);
  for (uint32_t left = (uint32_t)o->shards - 1; left;) left = changed(&pool.left, left);
}

void workers_close(void) {
  begin(ENDS);
  while (pool.workers > 1) platform_join(--pool.workers);
}
