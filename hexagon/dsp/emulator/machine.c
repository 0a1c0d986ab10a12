#include "../kernels/machine.h"
#include "machine.h"

enum { PAGE = 1 << 16, PAGES = MACHINE_TCM / PAGE, MOST = 1024, POISON = 0xa5, SUMMED = 1 << 13 };

struct machine machine;

// Transfers under way, of each engine, the oldest first: their bytes arrive when they are waited for. One that meets
// others of its engine begins, and has its claim, when they have ended.
static struct flight {
  struct transfer *t, was;
  struct machine_claim claim;
  int claimed;
} flights[DMA_ENGINES][MOST];
static uint32_t begun[DMA_ENGINES], ended[DMA_ENGINES]; // how many, ever
static uint32_t unclaimed[DMA_ENGINES];                 // how many of those under way
static struct flight *flight(int engine, uint32_t number) { return &flights[engine][number & (MOST - 1)]; }

static uint16_t claims[PAGES]; // of each page
static uint8_t of[PAGES];      // the last one's
static uint32_t queued;        // products

void machine_fault(const char *what) {
  static const char before[] = "the machine's fault: ", end[] = "\n";
  uint32_t n = 0;
  while (what[n]) n++;
  rt_write(2, before, sizeof before - 1), rt_write(2, what, n), rt_write(2, end, 1);
  rt_exit(99);
}

static void segmentation(uint32_t address) {
  const uint32_t page = (address - machine.tcm) / PAGE;
  if (page < PAGES && claims[page])
    machine_fault(of[page] == MACHINE_DMA ? "a destination of DMA is touched before it is waited for" : "a result of the tile unit is touched before it is waited for");
  machine_fault("memory that is not there");
}

void machine_open(void *tcm) {
  machine.tcm = (uint32_t)(uintptr_t)tcm;
  rt_on_segmentation(segmentation);
}

static void fill(void *p, uint32_t n, uint32_t with) {
  V *v = p;
  for (const V poison = splat_b(with); n >= sizeof(V); n -= sizeof(V)) *v++ = poison;
}

void machine_hide(struct rt_count from) {
  const struct rt_count took = rt_since(from, rt_count());
  machine.hidden.packets += took.packets, machine.hidden.instructions += took.instructions, machine.hidden.vector += took.vector;
}

void machine_poison(void) { fill((void *)(uintptr_t)machine.tcm, MACHINE_TCM, POISON); }

union words {
  V v;
  uint32_t w[32];
};

void machine_tiles(int locked) {
  if (__atomic_exchange_n(&machine.tiles, (uint32_t)locked, __ATOMIC_ACQ_REL) == (uint32_t)locked)
    machine_fault(locked ? "the tile unit is locked twice" : "the tile unit is given back, which nobody has locked");
}

#ifdef LUTRA_STRICT
static uint8_t late[MACHINE_TCM] __attribute__((aligned(128))), gathers[MACHINE_TCM / 128];
static uint32_t gathering;

void *machine_late(void *dst) {
  const uint32_t at = (uint32_t)(uintptr_t)dst - machine.tcm;
  if (gathers[at / 128]) machine_fault("a gather to where another one is under way");
  gathers[at / 128] = 1, gathering++;
  fill(dst, sizeof(V), POISON);
  return late + at;
}

void machine_arrive(const void *dst) {
  const uint32_t at = (uint32_t)(uintptr_t)dst - machine.tcm;
  if (!gathers[at / 128]) machine_fault("a wait for a gather that is not under way");
  gathers[at / 128] = 0, gathering--;
  const union words now = {Q6_V_vxor_VV(*(const V *)dst, splat_b(POISON))};
  for (int i = 0; i < 32; i++)
    if (now.w[i]) machine_fault("a gather's destination is written before it is waited for");
  *(V *)(uintptr_t)dst = *(const V *)(late + at);
}
#endif

void machine_idle(void) {
#ifdef LUTRA_STRICT
  if (gathering) machine_fault("a request ends with a gather that nobody has waited for");
#endif
  if (__atomic_load_n(&machine.tiles, __ATOMIC_ACQUIRE)) machine_fault("a request ends before the tile unit is given back");
  for (int i = 0; i < DMA_ENGINES; i++)
    if (begun[i] != ended[i]) machine_fault("a request ends with a transfer under way");
  if (queued) machine_fault("a request ends with a product in the tile unit's queue");
}

static uint32_t length(const struct transfer *t) { return t->control & ((1u << 24) - 1); }
static void *pointer(uint32_t address) { return (void *)(uintptr_t)address; }
static void protect(uint32_t page, int on) { rt_protect(pointer(machine.tcm + page * PAGE), PAGE, on); }

// pages are those of TCM, [first, end), that a claim has for itself.
struct pages {
  uint32_t first, end;
};
static struct pages pages(const struct machine_claim *c) {
  if (!machine_in_tcm(c->dst, c->bytes)) return (struct pages){0, 0};
  const uint32_t from = (uint32_t)(uintptr_t)c->dst - machine.tcm, end = from + c->bytes;
  const struct pages p = c->own ? (struct pages){from / PAGE, (end + PAGE - 1) / PAGE} : (struct pages){(from + PAGE - 1) / PAGE, end / PAGE};
  return p.first < p.end ? p : (struct pages){0, 0};
}

// outside are the two parts of what a claim writes that are not in its pages. poison makes them nonsense, of DMA and of the tile unit each its own;
// poisoned says whether they still are.
struct outside {
  uint8_t *at[2];
  uint32_t n[2];
};
static struct outside outside(const struct machine_claim *c) {
  const struct pages p = pages(c);
  uint8_t *end = c->dst + c->bytes, *first = p.end ? pointer(machine.tcm + p.first * PAGE) : end, *last = p.end ? pointer(machine.tcm + p.end * PAGE) : end;
  return (struct outside){{c->dst, last}, {first > c->dst ? (uint32_t)(first - c->dst) : 0, end > last ? (uint32_t)(end - last) : 0}};
}
static void poison(const struct machine_claim *c) {
  const struct outside o = outside(c);
  for (int i = 0; i < 2; i++) fill(o.at[i], o.n[i], POISON + (uint32_t)c->of);
}
static int poisoned(const struct machine_claim *c) {
  const struct outside o = outside(c);
  V changed = zero();
  for (int i = 0; i < 2; i++)
    for (uint32_t n = 0; n < o.n[i]; n += sizeof(V)) changed = Q6_V_vor_VV(changed, Q6_V_vxor_VV(*(const V *)(o.at[i] + n), splat_b(POISON + (uint32_t)c->of)));
  const union words u = {changed};
  uint32_t bits = 0;
  for (int i = 0; i < 32; i++) bits |= u.w[i];
  return !bits;
}

// sum is one of all that is read, in which order counts.
static uint32_t sum(const struct machine_read *r) {
  V s = zero();
  const V *v = r->at;
  for (uint32_t n = r->bytes; n >= sizeof(V); n -= sizeof(V)) s = Q6_Vw_vadd_VwVw(Q6_V_vxor_VV(Q6_Vuw_vlsr_VuwR(s, 31), Q6_Vw_vadd_VwVw(s, s)), *v++);
  const union words u = {s};
  uint32_t h = 0;
  for (int i = 0; i < 32; i++) h = 31 * h + u.w[i];
  return h;
}

void machine_claim(struct machine_claim *c) {
  for (struct machine_read *r = c->reads; r < c->reads + MACHINE_READS && r->bytes; r++) r->sum = sum(r);
  poison(c);
  const struct pages p = pages(c);
  for (uint32_t i = p.first; i < p.end; i++) {
    of[i] = (uint8_t)c->of;
    if (!claims[i]++) protect(i, 1);
  }
}

// machine_release gives back what a claim has; its results may be written then.
void machine_release(struct machine_claim *c) {
  const struct pages p = pages(c);
  for (uint32_t i = p.first; i < p.end; i++)
    if (!--claims[i]) protect(i, 0);
  const int dma = c->of == MACHINE_DMA;
  if (!poisoned(c)) machine_fault(dma ? "a destination of DMA is touched before it is waited for" : "a result of the tile unit is touched before it is waited for");
  for (const struct machine_read *r = c->reads; r < c->reads + MACHINE_READS && r->bytes; r++)
    if (sum(r) != r->sum) machine_fault(dma ? "what DMA reads is written before it is waited for" : "a tile is written while the tile unit's queue has it");
}

// hides counts what may run beside an engine or the queue: from when it is not empty until it is waited for.
static struct {
  uint32_t packets, hidden;
} since[2];
static void hides(int what, int begins, uint32_t now) {
  const uint32_t hidden = machine.hidden.packets;
  if (!begins) machine.counts.hides[what] += now - since[what].packets - (hidden - since[what].hidden);
  since[what].packets = now, since[what].hidden = hidden;
}

void machine_queues(uint32_t n, uint32_t packets) {
  if (n > queued) machine.counts.products++;
  if (!queued != !n) hides(MACHINE_TILES, n != 0, packets);
  if ((queued = n) > machine.counts.queued) machine.counts.queued = n;
}

static int overlap(uint32_t a, uint32_t bytes_a, uint32_t b, uint32_t bytes_b) { return a < b + bytes_b && b < a + bytes_a; }

// meet says whether a transfer may not begin while an older one is under way.
static int meet(const struct transfer *older, const struct transfer *t) {
  const uint32_t n = length(t), m = length(older);
  return overlap(t->dst, n, older->dst, m) || overlap(t->dst, n, older->src, m) || overlap(t->src, n, older->dst, m);
}

// claim gives an engine's transfer its claim, unless it meets one before it.
static void claim(int engine, uint32_t number) {
  struct flight *f = flight(engine, number);
  for (uint32_t i = ended[engine]; i != number; i++)
    if (meet(&flight(engine, i)->was, &f->was)) return;
  machine_claim(&f->claim);
  f->claimed = 1, unclaimed[engine]--;
}

// link is dma_link without its counts, and returns how many transfers of the engine are under way already. finish is dma_finish.
static uint32_t __attribute__((noinline)) link(int engine, struct transfer *last, struct transfer *t) {
  const uint32_t bytes = length(t), src = t->src, dst = t->dst, flying = begun[engine] - ended[engine];
  if (!last != !flying) machine_fault(last ? "dmlink to a transfer that is not under way" : "dmstart while transfers are under way");
  if (last && (last == t || last != flight(engine, begun[engine] - 1)->t)) machine_fault("dmlink to a transfer that is not the last one");
  if (flying == MOST) machine_fault("more transfers under way than the machine knows");
  if (!bytes || (t->control & (uint32_t)DMA_DONE)) machine_fault("a descriptor without bytes, or that is done");
  if (((src | dst | bytes) & 127)) machine_fault("DMA of addresses or bytes that are no multiples of 128");
  if ((t->control & DMA_SRC_BYPASS) && machine_in_tcm(pointer(src), bytes)) machine_fault("a bypass for a source that is TCM");
  if (last) last->next = (uint32_t)(uintptr_t)t, flight(engine, begun[engine] - 1)->was.next = last->next;
  struct flight *f = flight(engine, begun[engine]);
  f->t = t, f->was = *t, f->claimed = 0, unclaimed[engine]++;
  f->claim = (struct machine_claim){MACHINE_DMA, pointer(dst), bytes, t->control & DMA_OWN_PAGES, {{pointer(src), t->control & DMA_SRC_BYPASS && bytes > SUMMED ? 0 : bytes, 0}}}; // weights are long
  begun[engine]++;
  machine.counts.transfers++, machine.counts.moved += bytes;
  if (flying + 1 > machine.counts.flying) machine.counts.flying = flying + 1;
  claim(engine, begun[engine] - 1);
  return flying;
}

void dma_link(int engine, struct transfer *last, struct transfer *t) {
  const struct rt_count from = rt_count();
  const uint32_t flying = link(engine, last, t);
  machine_hide(from);
  if (!engine && !flying) hides(MACHINE_DMA, 1, rt_packets());
}

static int same(const struct transfer *a, const struct transfer *b) {
  return a->next == b->next && a->control == b->control && a->src == b->src && a->dst == b->dst;
}

static void __attribute__((noinline)) finish(int engine, const struct transfer *t) {
  uint32_t end = ended[engine];
  while (end != begun[engine] && flight(engine, end)->t != t) end++;
  if (end++ == begun[engine]) machine_fault("a wait for transfers that are not under way");
  while (ended[engine] != end) {
    struct flight *f = flight(engine, ended[engine]);
    machine_release(&f->claim);
    if (!same(f->t, &f->was)) machine_fault("a descriptor is written before its transfer is done");
    V *d = (V *)f->claim.dst;
    const V *s = pointer(f->t->src);
    if ((f->t->control & DMA_SRC_BYPASS) && machine.memory) s = machine.memory(s);
    const struct pages p = pages(&f->claim);
    for (uint32_t i = p.first; i < p.end; i++)
      if (claims[i]) protect(i, 0); // others of these pages are under way
    for (uint32_t left = f->claim.bytes; left; left -= sizeof(V)) *d++ = *s++;
    for (uint32_t i = p.first; i < p.end; i++)
      if (claims[i]) protect(i, 1);
    f->t->control |= (uint32_t)DMA_DONE;
    ended[engine]++;
    for (uint32_t i = ended[engine]; unclaimed[engine] && i != begun[engine]; i++)
      if (!flight(engine, i)->claimed) claim(engine, i);
  }
}

void dma_finish(int engine, const struct transfer *t) {
  const struct rt_count from = rt_count();
  finish(engine, t);
  if (!engine && ended[engine] == begun[engine]) hides(MACHINE_DMA, 0, from.packets);
  machine_hide(from);
}
