// The device's program under qemu-hexagon. It maps the shared memory, file 3, and
// answers runs of packets: a request on file 0, its packets after it, and an answer
// on file 1. It ends when file 0 does.
#include "../dispatch/dispatch.h"
#include "runtime.h"

enum { BATCH = 256 };

// The first request maps a memory of count bytes; each later one has count packets.
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
    const struct rt_count from = rt_count();
    r->status = run_packet(p, m);
    const struct rt_count to = rt_count();
    r->packets += to.packets - from.packets;
    r->instructions += to.instructions - from.instructions;
    r->vector += to.vector - from.vector;
    if (!r->status) r->done++;
  }
}

int main(void) {
  static struct packet packets[BATCH];
  struct memory memory = {0};
  struct request q;
  while (read_all(&q, sizeof q)) {
    if (q.magic != MAGIC) return 1;
    struct answer r = {MAGIC, q.number, 0, STATUS_OK, 0, 0, 0};
    if (!memory.base) {
      uint8_t *base = rt_map(3, q.count);
      memory = (struct memory){.base = base, .tcm = base, .size = q.count};
      r.status = memory.base ? STATUS_OK : STATUS_RANGE;
    } else {
      for (uint32_t left = q.count; left;) {
        const uint32_t n = left < BATCH ? left : BATCH;
        if (!read_all(packets, n * sizeof *packets)) return 0;
        run(&r, &memory, packets, n);
        left -= n;
      }
    }
    if (rt_write(1, &r, sizeof r) != sizeof r) return 0;
    if (!memory.base) return 1;
  }
  return 0;
}
