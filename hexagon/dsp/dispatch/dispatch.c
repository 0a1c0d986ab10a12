#include "dispatch.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"
#include "flow.h"
#include "shards.h"

#ifdef LUTRA_STRICT
uint32_t blind;
#endif

// pieces says where pieces of an OP_COLLECT, the first of which the table has at first, may begin: from an offset on at so many
// in the mapping of that one, behind TCM, and not where they meet what is written.
struct pieces {
  uint32_t add, from, n, meets, met;
};
static struct pieces pieces(const struct operands *o, const uint32_t *a, uint32_t first) {
  const struct span *dst = &o->span[OF_COLLECT_DST];
  const uint32_t begin = (first + a[4]) >> MAPPING_BITS << MAPPING_BITS, from = begin ? begin : TCM_BYTES;
  uint64_t end = (uint64_t)begin + (1u << MAPPING_BITS);
  if (end > o->size) end = o->size;
  return (struct pieces){a[4], from, end < (uint64_t)from + a[3] ? 0 : (uint32_t)end - from - a[3] + 1, dst->from - a[3] + 1, dst->end - dst->from + a[3] - 1};
}
static inline int piece(const struct pieces *p, uint32_t from) {
  const uint32_t at = from + p->add;
  return at >= p->add && !(at & (ALIGN - 1)) && at - p->from < p->n && at - p->meets >= p->met;
}

// check says whether a packet is right, whose operands have been listed: those are, but pieces of an OP_COLLECT.
static uint32_t check(const struct packet *p, const struct operands *o, const struct memory *m) {
  const uint32_t *a = p->args;
  if (p->op != OP_COLLECT || o->status) return o->status;
  const uint32_t *table = at(m, a[1]);
  const struct pieces where = pieces(o, a, *table);
  for (uint32_t i = 0; i < a[2]; i++)
    if (!piece(&where, table[i])) return STATUS_RANGE;
  return STATUS_OK;
}

static float number(uint32_t bits) {
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}

// collect begins an OP_COLLECT. It reads the table again, which the host may have written
// meanwhile. Pieces may be what the device has written: they come through the caches.
static uint32_t collect(const struct memory *m, const struct packet *p, const struct operands *o) {
  const uint32_t *a = p->args;
  const volatile uint32_t *table = at(m, a[1]);
  const struct pieces where = pieces(o, a, *table);
  uint8_t *to = at(m, a[0]), *base = m->base[where.from >> MAPPING_BITS];
  uint32_t number = 0, status = STATUS_OK;
  for (uint32_t n = 0; n < a[2]; n++, to += a[5]) {
    const uint32_t from = *table++;
    if (!piece(&where, from)) {
      status = STATUS_RANGE;
      break;
    }
    number = dma_push(0, to, base + (from + where.add), a[3], 0);
  }
  if (number) flow_add(o, FLOW_DMA, number, m);
  return status;
}

// product returns shard i of an OP_GEMV.
static struct gemv product(const struct operation *o, int shard) {
  const struct memory *m = o->memory;
  const uint32_t *a = o->packet->args, from = first_of(o, shard), n = first_of(o, shard + 1) - from;
  const int bytes = gemv_bytes(a), listed = bytes && a[8] == 4;
  const uint32_t unit = gemv_strips(a) * 128, left = a[6] - from * unit; // rows
  const uint32_t codes = unit / 8 * a[8] * a[7], scales = unit * 2 * (a[7] >> group_shift(a[9])), tile = (uint32_t)gemv_buffer(a);
#define MOVED(i, bytes) ((void *)((uint8_t *)at(m, a[i]) + (uint64_t)from * (bytes)))
  return (struct gemv){MOVED(0, 4 * unit), 4 * a[6], MOVED(1, codes), in_tcm(m, a[2]), MOVED(4, scales), a[5] ? MOVED(5, scales) : 0,
                       (int)(left < n * unit ? left : n * unit), (int)a[7], (int)a[8], (int)a[9], listed ? 1 : (int)a[10], listed ? BYTE_ZERO : (int)a[11], (int)a[3],
                       table(a[7], bytes), table_row(a[7], bytes), listed ? at(m, a[11]) : 0, MOVED(12, 4 * unit * a[3]),
                       (uint8_t *)in_tcm(m, a[12]) + pages((uint64_t)4 * a[6] * a[3]) + (uint32_t)shard * GEMV_BUFFERS * tile, tile, (int)gemv_strips(a), (int)a[14], shard};
#undef MOVED
}

static void __attribute__((noinline)) run_product(const struct operation *o, int shard) {
  const struct gemv g = product(o, shard);
  if (o->next && shard < o->next->shards) {
    const struct gemv next = product(o->next, shard);
    gemv(&g, &next);
  } else gemv(&g, 0);
}

static void run(const struct operation *o) {
  if (o->shards > 1) o->memory->share(o);
  else run_shard(o, 0);
}

// run_before runs an OP_GEMV, and has it bring the first tiles of the next one, up to end.
static void __attribute__((noinline)) run_before(struct operation o, const struct packet *end) {
  const struct packet *q = flow_ahead(o.packet, end, o.memory);
  struct operation next;
  if (q) next = cut(q, o.memory), o.next = &next;
  run(&o);
}

uint32_t run_packet(const struct packet *p, const struct packet *end, const struct memory *m) {
  const uint32_t *a = p->args;
  struct operands o;
  uint32_t status = of_tile_unit(p) && !m->tiles ? (uint32_t)STATUS_OP : operands_of(p, m->size, &o);
  if (status) return status;
#ifdef LUTRA_STRICT
  const uint32_t of_blind = o.span[blind & 7].end;
  if (blind >> 4 == p->op) o.span[blind & 7].end = 0;
#endif
  flow_settle(&o, of_tile_unit(p), m); // a check reads the table of an OP_COLLECT
#ifdef LUTRA_STRICT
  o.span[blind & 7].end = of_blind;
#endif
  if ((status = check(p, &o, m))) return status;
  switch (p->op) {
  case OP_COPY: flow_add(&o, FLOW_DMA, dma_push(0, at(m, a[0]), at(m, a[1]), a[2], 0), m); return STATUS_OK;
  case OP_COLLECT: return collect(m, p, &o);
  case OP_TILE_MUL:
    flow_add(&o, FLOW_TILES, m->tiles->push(&(struct tile_mul){in_tcm(m, a[0]), in_tcm(m, a[1]), in_tcm(m, a[2]), (int)a[3], in_tcm(m, a[4]), in_tcm(m, a[5]), (int)a[6], (int)a[7],
                                                              (int)a[8], (uint16_t)a[9], 0, in_tcm(m, a[10])}), m);
    return STATUS_OK;
  case OP_TILE_MUL_BYTES:
    flow_add(&o, FLOW_TILES, m->tiles->push(&(struct tile_mul){.out = in_tcm(m, a[0]), .act0 = in_tcm(m, a[1]), .wgt0 = in_tcm(m, a[2]), .k0 = (int)a[3], .rows = (int)a[4],
                                                              .cols = (int)a[5], .columns = in_tcm(m, a[6]), .bytes = 1}), m);
    return STATUS_OK;
  }
  const struct operation all = cut(p, m);
  if (p->op == OP_GEMV && m->ahead) run_before(all, end);
  else run(&all);
  return STATUS_OK;
}

void finish_packets(const struct memory *m) {
  gemv_forget();
  flow_drain(m);
}

// within returns which of n units from first on are among those from begin to end.
struct range {
  uint32_t from, n;
};
static struct range within(uint32_t first, uint32_t n, uint32_t begin, uint32_t end) {
  const uint32_t from = begin > first ? begin - first : 0, to = end < first + n ? end - first : n;
  return (struct range){from, end > first && to > from ? to - from : 0};
}

static void __attribute__((noinline)) run_delta(const struct memory *m, const uint32_t *a, int from, int end) {
  delta_rule(&(struct delta){{at(m, a[0]), a[9]}, {at(m, a[1]), a[10]}, {at(m, a[2]), a[11]}, a[3] ? at(m, a[3]) : 0, at(m, a[4]), (int)a[5], (int)a[6], (int)a[7],
                             (int)a[8], (int)a[12], (int)a[13], (int)a[14]}, from, end);
}

void run_shard(const struct operation *o, int shard) {
  const struct memory *m = o->memory;
  const uint32_t *a = o->packet->args;
  // Of its units from on, n ones: pointers and counts of a kernel are moved to them.
  const uint32_t from = first_of(o, shard), n = first_of(o, shard + 1) - from;
#define AT(i) at(m, a[i])
#define OR_NONE(i) (a[i] ? AT(i) : 0)
#define INT(i) ((int)a[i])
#define MOVED(i, bytes) ((void *)((uint8_t *)AT(i) + (uint64_t)from * (bytes)))
#define MOVED_OR_NONE(i, bytes) (a[i] ? MOVED(i, bytes) : 0)
#define ROWS(i, stride) &(struct rows){AT(i), a[stride]}
#define MOVED_ROWS(i, stride, bytes) &(struct rows){MOVED(i, bytes), a[stride]}
#define N ((int)n)
  switch (o->packet->op) {
  case OP_PRECOMPUTE: {
    const uint32_t units = tables_units(a); // of a row
    for (uint32_t row = 0; row < a[1]; row++) {
      const struct range part = within(row * units, units, from, from + n);
      if (!part.n) continue;
      const uint32_t column = part.from * TABLES_UNIT, left = a[3] - column, all = part.n * TABLES_UNIT;
      uint8_t *tables = (uint8_t *)AT(0) + row * table_row(a[3], a[4] == 1);
      int32_t *sums = (int32_t *)(tables + table(a[3], a[4] == 1)) + column / 32;
      const int16_t *x = (const int16_t *)AT(2) + row * a[3] + column;
      tables += table(column, a[4] == 1);
      if (a[4]) precompute_bytes(tables, sums, x, (int)(left < all ? left : all));
      else precompute((int16_t *)tables, sums, x, (int)(left < all ? left : all));
    }
    break;
  }
  case OP_GEMV: run_product(o, shard); break;
  case OP_DEQUANT:
    for (uint32_t strip = 0; strip < dequant_strips(a); strip++) {
      const struct range part = within(strip * a[7], a[7], from, from + n);
      if (part.n)
        dequant(&(struct dequant){(uint16_t *)((uint8_t *)AT(0) + (strip * a[7] * 8 + part.from * 2) * TILE_BYTES), AT(1), AT(2), OR_NONE(3), AT(4), INT(5) + (int)strip,
                                  INT(6) + (int)part.from, (int)part.n, INT(8), INT(9), INT(10), dequant_bytes(a), INT(7)});
    }
    break;
  case OP_BYTE_TILES: byte_tiles(MOVED(0, 2 * TILE_BYTES), MOVED(1, 1024 * a[3]), N, INT(2), INT(3)); break;
  case OP_VLUT16: vlut16(MOVED(0, 512), MOVED(1, 144), N, AT(3)); break;
  case OP_EXP_TABLE: exp_table(AT(0), (int)from * EXP_UNIT, ((int)from + N) * EXP_UNIT); break;
  case OP_SOFTMAX: softmax(AT(0), AT(1), AT(2), AT(3), (int)from * SOFTMAX_UNIT, ((int)from + N) * SOFTMAX_UNIT, INT(5)); break;
  case OP_RMS_NORM:
    if (a[4] > 1) rms_norm(MOVED_ROWS(0, 6, 4 * a[5]), MOVED_ROWS(1, 7, 4 * a[5]), OR_NONE(2), INT(3), N, INT(5), number(a[8]), number(a[9]));
    else rms_norm(MOVED_ROWS(0, 6, a[6]), MOVED_ROWS(1, 7, a[7]), OR_NONE(2), N, 1, INT(5), number(a[8]), number(a[9]));
    break;
  case OP_QUANTIZE: quantize(MOVED(0, 2 * a[4]), MOVED(1, 4), MOVED_ROWS(2, 6, a[6]), N, INT(4), INT(5)); break;
  case OP_SCALE: scale_sums(MOVED_ROWS(0, 7, 128), MOVED_ROWS(1, 8, 128), AT(2), MOVED(3, 128), MOVED_OR_NONE(4, 128), INT(5), N * 32); break;
  case OP_ADD: add_rows(MOVED_ROWS(0, 4, 128), MOVED_ROWS(1, 5, 128), INT(2), N * 32, number(a[6])); break;
  case OP_ROPE: rope(MOVED_ROWS(0, 7, 4 * a[4]), AT(1), INT(2), N, INT(4), INT(5), INT(6)); break;
  case OP_GLU: glu(MOVED_ROWS(0, 5, 128), MOVED_ROWS(1, 6, 128), MOVED_ROWS(2, 6, 128), INT(3), N * 32, INT(7), number(a[8]), number(a[9]), number(a[10])); break;
  case OP_TO_TILES: to_tiles(MOVED(0, a[6]), MOVED_ROWS(1, 5, 4 * a[4]), INT(2), N, INT(4), a[6], INT(7), INT(8), number(a[9])); break;
  case OP_FROM_TILES: from_tiles(ROWS(0, 5), AT(1), AT(2), AT(7), INT(3), INT(4), INT(6), INT(8)); break;
  case OP_ROWS_TO_TILES: // units are of 32 rows
    rows_to_tiles(MOVED(0, 64 * a[4]), MOVED(1, 128), MOVED_ROWS(2, 6, 32 * a[6]), (int)(a[3] - 32 * from < 32 * n ? a[3] - 32 * from : 32 * n), INT(4), INT(5));
    break;
  case OP_TILES_TO_ROWS:
    tiles_to_rows(MOVED_ROWS(0, 7, 32 * a[7]), MOVED(1, TILE_BYTES), MOVED(2, 128), AT(3), OR_NONE(4), (int)(a[5] - 32 * from < 32 * n ? a[5] - 32 * from : 32 * n), INT(6),
                  (int)tiles_of(a[5]), number(a[8]), INT(9));
    break;
  case OP_FOLD: fold(AT(0), AT(1), OR_NONE(2), INT(3)); break;
  case OP_SOFT_CAP: soft_cap(MOVED(0, TILE_BYTES), AT(1), N); break;
  case OP_MUL: mul_rows(MOVED_ROWS(0, 5, 128), MOVED_ROWS(1, 6, 128), MOVED_ROWS(2, 7, 128), INT(3), N * 32); break;
  case OP_CONV: conv(MOVED_ROWS(0, 6, 128), MOVED_ROWS(1, 7, 128), MOVED(2, 128), MOVED(3, 128), 4 * a[5], INT(4), N * 32, INT(8), INT(9)); break;
  case OP_GATES: gates(MOVED_ROWS(0, 5, 128), MOVED_ROWS(1, 6, 128), MOVED(2, 128), 4 * a[4], INT(3), N * 32); break;
  case OP_DELTA: run_delta(m, a, (int)from, (int)from + N); break;
  case OP_LAYER_NORM: layer_norm(MOVED_ROWS(0, 6, a[6]), MOVED_ROWS(1, 7, a[7]), AT(2), AT(3), N, INT(5), number(a[8]), number(a[9])); break;
  }
}
