// The device's program under qemu-hexagon. It maps the shared memory, file 3, and
// answers runs of packets: a request on file 0, its packets after it, and an answer
// on file 1. It ends when file 0 does.
#include "../dispatch/dispatch.h"
#include "machine.h"
#include "runtime.h"
#include "shards.h"

enum { BATCH = 256 };

// The first request maps a memory of count bytes; each later one has count packets. begins of
// the first is the number of workers, and from bit 8 on the seed of an order of shards: see
// emulator/shards.h.
static int read_all(void *p, uint32_t n) {
  for (uint8_t *b = p; n;) {
    long r = rt_read(0, b, n);
    if (r <= 0) return 0;
    b += r, n -= (uint32_t)r;
  }
  return 1;
}

static void run(struct answer *r, const struct memory *m, const struct packet *p, uint32_t n) {
  for (; n && !r->status; n--, p++) {
    const struct rt_count hidden = machine.hidden, from = rt_count();
    r->status = run_packet(p, m);
    const struct rt_count took = rt_since(from, rt_count()), none = rt_since(hidden, machine.hidden); // which a chip does not take
    r->packets += took.packets - none.packets;
    r->instructions += took.instructions - none.instructions;
    r->vector += took.vector - none.vector;
    if (!r->status) r->done++;
  }
  machine_idle();
}

// tell has an answer what the machine has counted for a request.
static void tell(struct answer *r) {
  const struct machine_counts *c = &machine.counts;
  r->longest = r->packets - c->beside, r->barriers = c->barriers;
  r->transfers = c->transfers, r->moved = c->moved, r->flying = c->flying, r->gathers = c->gathers, r->exposed = c->exposed;
  for (int i = 0; i < 2; i++) r->weights[i] = c->weights[i], r->sums[i] = c->sums[i];
  machine.counts = (struct machine_counts){0};
}

int main(void) {
  static struct packet packets[BATCH];
  struct memory memory = {0};
  struct request q;
  while (read_all(&q, sizeof q)) {
    if (q.magic != MAGIC) return 1;
    struct answer r = {.magic = MAGIC, .number = q.number};
    if (!memory.base) {
      uint8_t *base = rt_map(3, q.count);
      memory = (struct memory){.base = base, .tcm = base, .size = q.count, .workers = (int)(q.begins & 255)};
      shards_open(&memory, q.begins >> 8);
      r.status = memory.base ? STATUS_OK : STATUS_RANGE;
      machine_open(base);
    } else {
      for (uint32_t left = q.count; left;) {
        const uint32_t n = left < BATCH ? left : BATCH;
        if (!read_all(packets, n * sizeof *packets)) return 0;
        run(&r, &memory, packets, n);
        left -= n;
      }
      tell(&r);
    }
    if (rt_write(1, &r, sizeof r) != sizeof r) return 0;
    if (!memory.base) return 1;
  }
  return 0;
}
