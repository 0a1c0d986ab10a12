#include "shards.h"
#include "../kernels/hvx.h"
#include "machine.h"
#include "runtime.h"
#include "writes.h"

// A record is what becomes of a place that an operation writes.
struct record {
  struct write of;
  uint8_t *begin;    // what each shard finds: what it held, or something else if nothing reads it
  uint8_t *result;   // of all shards
  uint8_t *shard_of; // of each unit: the shard that wrote it, from 1 on
};

static void copy(uint8_t *d, const uint8_t *s, uint32_t n, uint32_t flip) {
  const V f = splat_w(flip);
  for (; n >= 128; n -= 128, d += 128, s += 128) *(HVX_UVector *)d = Q6_V_vxor_VV(loadu(s), f);
  for (; n; n -= 4, d += 4, s += 4) *(uint32_t *)d = *(const uint32_t *)s ^ flip;
}

static int differ(const uint8_t *a, const uint8_t *b, uint32_t n) {
  for (; n; n -= 4, a += 4, b += 4)
    if (*(const uint32_t *)a != *(const uint32_t *)b) return 1;
  return 0;
}

// A unit of a record: its number, where it begins, and its bytes.
struct unit {
  uint32_t i, from, n;
};
static struct unit next(const struct record *r, struct unit u) {
  const uint32_t from = u.from + u.n, left = r->of.n - from;
  return (struct unit){u.i + 1, from, left < r->of.unit ? left : r->of.unit};
}
#define EACH_UNIT(r, u) for (struct unit u = next(r, (struct unit){~0u, 0, 0}); u.n; u = next(r, u))

// alone runs a shard that finds what the operation found, and keeps what it wrote.
static void alone(const struct operation *o, int shard, struct record *records, int n) {
  for (struct record *r = records; r < records + n; r++) copy(r->of.at, r->begin, r->of.n, 0);
  run_shard(o, shard);
  for (struct record *r = records; r < records + n; r++)
    EACH_UNIT(r, u) {
      const uint8_t *now = r->of.at + u.from;
      if (!differ(now, r->begin + u.from, u.n)) continue;
      if (r->shard_of[u.i]) machine_fault(machine_in_tcm(now, 4) ? "two shards write one vector of TCM" : "two shards write one vector");
      r->shard_of[u.i] = (uint8_t)(shard + 1);
      copy(r->result + u.from, now, u.n, 0);
    }
}

// among runs it where nonsense is what others write, and holds it against what it wrote.
static void among(const struct operation *o, int shard, const struct record *records, int n) {
  for (const struct record *r = records; r < records + n; r++)
    EACH_UNIT(r, u) copy(r->of.at + u.from, r->begin + u.from, u.n, r->shard_of[u.i] && r->shard_of[u.i] != shard + 1 ? 0x5a5a5a5a : 0);
  run_shard(o, shard);
  for (const struct record *r = records; r < records + n; r++)
    EACH_UNIT(r, u) {
      const int whose = r->shard_of[u.i]; // what others write is theirs alone
      if ((!whose || whose == shard + 1) && differ(r->of.at + u.from, (whose ? r->result : r->begin) + u.from, u.n)) machine_fault("a shard reads what another writes");
    }
}

static uint32_t seed;

// below is a number from 0 to n-1, of at most MAX_WORKERS.
static int below(int n) {
  do seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
  while ((int)(seed & (MAX_WORKERS - 1)) >= n);
  return (int)(seed & (MAX_WORKERS - 1));
}

static void share_checked(const struct operation *o) {
  struct write of[MOST_WRITTEN];
  struct record records[MOST_WRITTEN];
  const int n = writes(o, of);
  for (int i = 0; i < n; i++) {
    uint8_t *p = rt_memory(3 * of[i].n);
    if (!p) machine_fault("no memory to check shards in");
    records[i] = (struct record){of[i], p, p + of[i].n, p + 2 * of[i].n};
    copy(records[i].begin, of[i].at, of[i].n, of[i].kept ? 0 : ~0u);
    copy(records[i].result, of[i].at, of[i].n, 0);
  }
  int order[MAX_WORKERS];
  for (int i = 0; i < o->shards; i++) {
    const int j = below(i + 1);
    order[i] = order[j], order[j] = i;
  }
  for (int i = 0; i < o->shards; i++) alone(o, order[i], records, n);
  for (int i = 0; i < o->shards; i++) among(o, order[i], records, n);
  for (int i = 0; i < n; i++) {
    copy(of[i].at, records[i].result, of[i].n, 0);
    rt_free(records[i].begin, 3 * of[i].n);
  }
  machine.counts.barriers++;
}

// counted runs a shard, and returns its packets.
static uint32_t counted(const struct operation *o, int shard) {
  const struct rt_count hidden = machine.hidden, from = rt_count();
  run_shard(o, shard);
  return rt_since(from, rt_count()).packets - rt_since(hidden, machine.hidden).packets;
}

static void share(const struct operation *o) {
  uint32_t longest = 0, all = 0;
  for (int i = o->shards; i--;) { // the first one's engine has copies under way, which no other engine waits for
    const uint32_t n = counted(o, i);
    longest = n > longest ? n : longest, all += n;
  }
  machine.counts.beside += all - longest, machine.counts.barriers++;
}

void shards_open(struct memory *m, uint32_t s) {
  seed = s;
#ifdef LUTRA_STRICT
  m->enough = 1;
#else
  m->enough = s ? 1 : SHARD_PACKETS;
#endif
  m->share = s ? share_checked : share;
  m->ahead = !s; // shards that are checked run several times
}
