// The device's program under qemu-hexagon. It maps the shared memory, file 3, in as many mappings as on a chip, and
// answers runs of packets: a request on file 0, its packets after it, and an answer
// on file 1. It ends when file 0 does.
#include "../dispatch/operands.h"
#include "machine.h"
#include "runtime.h"
#include "shards.h"

enum { BATCH = 256, RING = 16, WANTED = 0x100 };

// The first request maps a memory of count bytes; each later one has count packets, at most BATCH. begins of
// the first is the number of workers, and from bit 8 on the seed of an order of shards: see
// emulator/shards.h. In the strict program begins of a later one has from bit 1 on what is blind.
static int read_all(void *p, uint32_t n) {
  for (uint8_t *b = p; n;) {
    long r = rt_read(0, b, n);
    if (r <= 0) return 0;
    b += r, n -= (uint32_t)r;
  }
  return 1;
}

// The tile unit is the host's. A product is computed when it is waited for, as late as on any chip: the
// answer with the status WANTED asks for packet done of a request, and a word says that its results are there.
static struct {
  uint32_t request, packet; // that runs
  uint32_t pushed, done;
  struct product {
    uint32_t packet;
    struct machine_claim claim, columns; // the host's unit has no scales of columns: their place is taken all the same
  } ring[RING];
} unit;

static void unit_wait(uint32_t number) {
  const struct rt_count from = rt_count();
  for (uint32_t answer; (int32_t)(number - unit.done) > 0; machine_queues(unit.pushed - ++unit.done, from.packets)) {
    struct product *p = &unit.ring[unit.done % RING];
    machine_release(&p->columns), machine_release(&p->claim);
    const struct answer wanted = {.magic = MAGIC, .number = unit.request, .done = p->packet, .status = WANTED};
    if (rt_write(1, &wanted, sizeof wanted) != sizeof wanted || !read_all(&answer, sizeof answer) || answer != MAGIC) rt_exit(1);
  }
  machine_hide(from);
}

static uint32_t unit_push(const struct tile_mul *t) {
  if (unit.pushed - unit.done == RING) unit_wait(unit.done + 1);
  const struct rt_count from = rt_count();
  struct product *p = &unit.ring[unit.pushed++ % RING];
  p->packet = unit.packet;
  p->claim = (struct machine_claim){MACHINE_TILES, (uint8_t *)t->out, out_bytes(t), 0,
                                    {{t->act0, act_bytes(t, t->k0), 0}, {t->wgt0, wgt_bytes(t, t->k0), 0}, {t->act1, act_bytes(t, t->k1), 0}, {t->wgt1, wgt_bytes(t, t->k1), 0}}};
  p->columns = (struct machine_claim){MACHINE_TILES, (uint8_t *)t->columns, t->bytes ? BYTE_COLUMNS_BYTES : COLUMNS_BYTES, 0, {{0, 0, 0}}};
  machine_claim(&p->claim), machine_claim(&p->columns);
  machine_hide(from);
  machine_queues(unit.pushed - unit.done, rt_packets());
  return unit.pushed;
}

// counts adds what run takes of packets, which a chip takes too.
#define COUNTS(r, run)                                                                                            \
  do {                                                                                                            \
    const struct rt_count hidden = machine.hidden, from = rt_count();                                             \
    run;                                                                                                          \
    const struct rt_count took = rt_since(from, rt_count()), none = rt_since(hidden, machine.hidden);             \
    (r)->packets += took.packets - none.packets, (r)->instructions += took.instructions - none.instructions;      \
    (r)->vector += took.vector - none.vector;                                                                     \
  } while (0)

static void run(struct answer *r, const struct memory *m, const struct packet *p, uint32_t n) {
  for (const struct packet *end = p + n; p < end && !r->status; p++) {
    unit.packet = r->done;
    COUNTS(r, r->status = run_packet(p, end, m));
    if (!r->status) r->done++;
  }
}

// tell has an answer what the machine has counted for a request.
static void tell(struct answer *r) {
  const struct machine_counts *c = &machine.counts;
  r->longest = r->packets - c->beside, r->barriers = c->barriers;
  r->transfers = c->transfers, r->moved = c->moved, r->flying = c->flying, r->gathers = c->gathers, r->exposed = c->exposed;
  r->products = c->products, r->queued = c->queued;
  for (int i = 0; i < 2; i++) r->weights[i] = c->weights[i], r->sums[i] = c->sums[i], r->hides[i] = c->hides[i];
  machine.counts = (struct machine_counts){0};
}

// map maps a memory of so many bytes, and says whether it is there.
static int map(struct memory *m) {
  for (int i = 0; mapping(m->size, i); i++) {
    uint8_t *begin = rt_map(3, (uint32_t)i << MAPPING_BITS, mapping(m->size, i));
    if (!begin) return 0;
    m->base[i] = begin - ((uint32_t)i << MAPPING_BITS);
  }
  m->tcm = m->base[0];
  return 1;
}

int main(void) {
  static const struct tile_unit tiles = {unit_push, unit_wait};
  static struct packet packets[BATCH];
  struct memory memory = {0};
  struct request q;
  while (read_all(&q, sizeof q)) {
    if (q.magic != MAGIC) return 1;
    struct answer r = {.magic = MAGIC, .number = q.number};
    if (!memory.size) {
      memory = (struct memory){.size = q.count, .tiles = &tiles, .workers = (int)(q.begins & 255)};
      r.status = map(&memory) ? STATUS_OK : STATUS_RANGE;
      shards_open(&memory, q.begins >> 8);
      machine_open(memory.tcm);
    } else {
      unit.request = q.number;
#ifdef LUTRA_STRICT
      if (q.begins) blind = q.begins >> 1;
#endif
      if (q.count > BATCH) return 1;
      if (!read_all(packets, q.count * sizeof *packets)) return 0;
      run(&r, &memory, packets, q.count);
      COUNTS(&r, finish_packets(&memory));
      machine_idle();
      tell(&r);
    }
    if (rt_write(1, &r, sizeof r) != sizeof r) return 0;
    if (!memory.tcm) return 1;
  }
  return 0;
}
