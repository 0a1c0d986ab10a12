#include "dispatch.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"
#include "flow.h"
#include "shards.h"

enum { COLUMNS_BYTES = 256, BYTE_COLUMNS_BYTES = 512, MAX_TILES = TCM_BYTES / TILE_BYTES, EXP_TABLE_BYTES = 1 << 16, MAX_B = 255, MAX_TAPS = 8, MAX_ROWS = 1 << 10, MAX_STRIDE = 1 << 22, BYTE_ZERO = 128 };
#define SIGN 0x80000000u
#define INFINITE 0x7f800000u // bits of float32, and NaN from there on

// A check keeps the first thing that is wrong with a packet. Its rules, and their
// order, are those of (device.Packet).Check.
struct check {
  uint64_t size; // of the memory
  uint32_t status;
};

static void require(struct check *c, int ok, uint32_t status) {
  if (!ok && !c->status) c->status = status;
}

static void count(struct check *c, uint32_t n, uint32_t least, uint32_t most) { require(c, n >= least && n <= most, STATUS_SIZE); }

// dim is a count of rows or columns; products of those that pass fit 64 bits.
static uint64_t dim(struct check *c, uint32_t n, uint32_t multiple) {
  require(c, n > 0 && n <= MAX_DIM && (n & (multiple - 1)) == 0, STATUS_SIZE);
  return n;
}

static uint64_t tiles(struct check *c, uint32_t n, uint32_t least) {
  count(c, n, least, MAX_TILES);
  return n;
}

static void operand(struct check *c, uint32_t at, uint64_t n, uint32_t align, uint64_t limit) {
  const int fits = n <= c->size && at <= c->size - n && at + n <= limit;
  require(c, (at & (align - 1)) == 0 && fits && (at >= TCM_BYTES || at + n <= TCM_BYTES), STATUS_RANGE);
}

static void memory(struct check *c, uint32_t at, uint64_t n) { operand(c, at, n, ALIGN, c->size); }
static void tcm(struct check *c, uint32_t at, uint64_t n, uint32_t align) { operand(c, at, n, align, TCM_BYTES); }

// apart refuses operands that share bytes though the one is written while the other is read.
static void apart(struct check *c, uint32_t at, uint64_t n, uint32_t other, uint64_t bytes) {
  require(c, at + n <= other || other + bytes <= at, STATUS_RANGE);
}

static void format(struct check *c, uint32_t bits, uint32_t group, uint32_t k, int bytes) {
  require(c, bits == 1 || bits == 2 || bits == 4 || bits == 8, STATUS_NUMBER);
  require(c, group == 32 || group == 64 || group == 128 || (group == k && !bytes), STATUS_NUMBER);
}

// Codes in bytes, of OP_DEQUANT.
static int dequant_bytes(const uint32_t *a) { return a[9] == 8 || (a[9] == 4 && a[11] == 1); }

static void behind(struct check *c, uint32_t at, uint64_t n, uint32_t from) {
  memory(c, at, n);
  require(c, at >= from, STATUS_RANGE);
}

// weights are the first m rows of a matrix that lies behind from.
static void weights(struct check *c, uint32_t codes, uint32_t scales, uint32_t offsets, uint64_t m, uint64_t k, uint32_t bits, uint32_t group,
                    uint32_t from) {
  behind(c, codes, m * k / 8 * bits, from);
  if (group == k) return;
  behind(c, scales, (m * k >> group_shift(group)) * 2, from);
  if (offsets) behind(c, offsets, (m * k >> group_shift(group)) * 2, from);
}

static int piece(struct check *c, uint32_t from, const uint32_t *a) {
  const uint64_t at = (uint64_t)from + a[4];
  require(c, at >= TCM_BYTES && at <= 0xffffffffu, STATUS_RANGE);
  memory(c, (uint32_t)at, a[3]);
  apart(c, a[0], (uint64_t)a[2] * a[5], (uint32_t)at, a[3]);
  return !c->status;
}

// floats are n rows of parts times width float32, stride bytes apart.
static void floats(struct check *c, uint32_t at, uint32_t n, uint32_t parts, uint32_t width, uint32_t stride) {
  const uint64_t bytes = (uint64_t)parts * width * 4;
  require(c, stride % ALIGN == 0 && stride <= MAX_STRIDE && bytes <= stride, STATUS_SIZE);
  memory(c, at, (uint64_t)(n - 1) * stride + bytes);
}

// rows checks their counts: n, parts of a row, and numbers of a part.
static void rows(struct check *c, uint32_t n, uint32_t parts, uint32_t width) {
  count(c, n, 1, MAX_ROWS);
  count(c, parts, 1, MAX_DIM / 32);
  dim(c, width, 32);
}

// factor is n bytes of TCM that the tile unit reads while it writes out.
static void factor(struct check *c, uint32_t out, uint64_t written, uint32_t at, uint64_t n, uint32_t align) {
  tcm(c, at, n, align);
  apart(c, out, written, at, n);
}

// By itself, as is what runs it: a function of all packets would keep more registers for each.
static void __attribute__((noinline)) delta(struct check *c, const uint32_t *a) {
  rows(c, a[5], a[6], a[8]);
  count(c, a[7], 1, MAX_DIM / 32);
  const uint32_t heads = a[6] * a[7];
  const uint64_t state = 4 * (uint64_t)heads * a[8] * a[8];
  require(c, (uint64_t)a[6] * a[7] <= MAX_DIM / 32, STATUS_SIZE);
  count(c, a[12], 0, MAX_DIM);
  count(c, a[13], 0, MAX_DIM);
  count(c, a[14], 0, 1);
  floats(c, a[0], a[5], heads, a[8], a[9]);
  floats(c, a[1], a[5], 2 * a[6] + heads, a[8], a[10]);
  floats(c, a[2], a[5], 1, (a[12] > a[13] ? a[12] : a[13]) + heads, a[11]);
  if (a[3]) memory(c, a[3], state);
  memory(c, a[4], state);
}

static uint32_t check(const struct packet *p, const struct memory *all) {
  struct check c = {all->size, STATUS_OK};
  const uint32_t *a = p->args;
  uint64_t m, n, k, k1, written;
  switch (p->op) {
  case OP_PING: break;
  case OP_COPY:
    require(&c, a[2] > 0 && a[2] % ALIGN == 0, STATUS_SIZE);
    memory(&c, a[0], a[2]);
    memory(&c, a[1], a[2]);
    apart(&c, a[0], a[2], a[1], a[2]);
    break;
  case OP_PRECOMPUTE:
    require(&c, a[4] <= 1, STATUS_NUMBER);
    count(&c, a[1], 1, MAX_ROWS);
    k = dim(&c, a[3], 256);
    memory(&c, a[0], (uint64_t)a[1] * table_row(a[3], a[4] == 1));
    memory(&c, a[2], 2 * k * a[1]);
    break;
  case OP_GEMV:
    format(&c, a[8], a[9], a[7], gemv_bytes(a));
    if (a[8] == 8) require(&c, a[10] == 1 && a[11] == BYTE_ZERO, STATUS_NUMBER);
    else if (!gemv_bytes(a)) require(&c, (a[10] == 1 || a[10] == 2) && a[11] <= MAX_B, STATUS_NUMBER);
    count(&c, a[3], 1, MAX_ROWS);
    m = dim(&c, a[6], 128);
    k = dim(&c, a[7], 256);
    count(&c, gemv_strips(a), 1, GEMV_STRIPS);
    count(&c, gemv_shares(a), 1, MAX_WORKERS);
    dim(&c, a[14], 256);
    memory(&c, a[0], 4 * m * a[3]);
    weights(&c, a[1], a[4], a[5], m, k, a[8], a[9], TCM_BYTES);
    tcm(&c, a[2], (uint64_t)a[3] * table_row(a[7], gemv_bytes(a)), ALIGN);
    if (gemv_bytes(a) && a[8] == 4) memory(&c, a[11], 16);
    written = pages(4 * m * a[3]) + gemv_shares(a) * GEMV_BUFFERS * gemv_buffer(a);
    tcm(&c, a[12], written, PAGE);
    apart(&c, a[12], written, a[0], 4 * m * a[3]);
    apart(&c, a[12], written, a[2], (uint64_t)a[3] * table_row(a[7], gemv_bytes(a)));
    break;
  case OP_DEQUANT:
    format(&c, a[9], a[10], a[8], dequant_bytes(a));
    require(&c, a[11] == 0 || (dequant_bytes(a) && a[11] == 1), STATUS_NUMBER);
    k = dim(&c, a[8], 256);
    count(&c, a[5], 0, MAX_DIM / 128 - 1);
    count(&c, a[12], 0, MAX_DIM / 128 - 1);
    count(&c, a[7], 1, MAX_DIM / 64);
    count(&c, a[6], 0, MAX_DIM / 64);
    require(&c, (uint64_t)a[6] + a[7] <= k / 64, STATUS_SIZE);
    memory(&c, a[0], (uint64_t)dequant_strips(a) * a[7] * 8 * TILE_BYTES);
    weights(&c, a[1], a[2], a[3], ((uint64_t)a[5] + dequant_strips(a)) * 128, k, a[9], a[10], 0);
    if (a[9] != 8) memory(&c, a[4], 2u << (a[9] & 7));
    break;
  case OP_VLUT16:
    count(&c, a[2], 1, ~0u);
    memory(&c, a[0], (uint64_t)a[2] * 512);
    operand(&c, a[1], (uint64_t)a[2] * 144, 16, c.size);
    memory(&c, a[3], 32);
    break;
  case OP_EXP_TABLE: tcm(&c, a[0], EXP_TABLE_BYTES, EXP_TABLE_BYTES); break;
  case OP_SOFTMAX:
    m = tiles(&c, a[4], 1);
    k = tiles(&c, a[5], 1);
    tcm(&c, a[0], m * k * TILE_BYTES, ALIGN);
    tcm(&c, a[1], EXP_TABLE_BYTES, EXP_TABLE_BYTES);
    memory(&c, a[2], m * 32 * sizeof(struct softmax_state));
    tcm(&c, a[3], m * TILE_BYTES, ALIGN);
    break;
  case OP_TILE_MUL:
    require(&c, a[9] >> 16 == 0 && (a[9] >> 10 & 31) != 31, STATUS_NUMBER);
    k = tiles(&c, a[3], 1);
    k1 = tiles(&c, a[6], 0);
    m = tiles(&c, a[7], 1);
    n = tiles(&c, a[8], 1);
    written = m * n * TILE_BYTES;
    tcm(&c, a[0], written, TILE_BYTES);
    factor(&c, a[0], written, a[1], m * k * TILE_BYTES, TILE_BYTES);
    factor(&c, a[0], written, a[2], n * k * TILE_BYTES, TILE_BYTES);
    factor(&c, a[0], written, a[10], COLUMNS_BYTES, COLUMNS_BYTES);
    if (!k1) break;
    factor(&c, a[0], written, a[4], m * k1 * TILE_BYTES, TILE_BYTES);
    factor(&c, a[0], written, a[5], n * k1 * TILE_BYTES, TILE_BYTES);
    break;
  case OP_BYTE_TILES:
    require(&c, a[3] == 1 || a[3] == 2 || a[3] == 4, STATUS_NUMBER);
    count(&c, a[2], 1, MAX_DIM / 64);
    memory(&c, a[0], (uint64_t)a[2] * 4 * TILE_BYTES);
    memory(&c, a[1], (uint64_t)a[2] * 1024 * a[3]);
    break;
  case OP_TILE_MUL_BYTES:
    k = tiles(&c, a[3], 1);
    m = tiles(&c, a[4], 1);
    n = tiles(&c, a[5], 1);
    written = m * n * PLANES * TILE_BYTES;
    tcm(&c, a[0], written, TILE_BYTES);
    factor(&c, a[0], written, a[1], m * k * TILE_BYTES, TILE_BYTES);
    factor(&c, a[0], written, a[2], n * k * LANES_BYTES, LANES_BYTES);
    factor(&c, a[0], written, a[6], BYTE_COLUMNS_BYTES, BYTE_COLUMNS_BYTES);
    break;
  case OP_COLLECT:
    n = tiles(&c, a[2], 1);
    require(&c, a[3] > 0 && a[3] % ALIGN == 0 && a[5] % ALIGN == 0 && a[5] >= a[3] && a[5] <= TCM_BYTES, STATUS_SIZE);
    memory(&c, a[0], n * a[5]);
    memory(&c, a[1], 4 * n);
    require(&c, a[1] >= TCM_BYTES, STATUS_RANGE);
    apart(&c, a[0], n * a[5], a[1], 4 * n);
    for (k = 0; !c.status && k < n; k++) piece(&c, ((const uint32_t *)(all->base + a[1]))[k], a);
    break;
  case OP_RMS_NORM:
    rows(&c, a[3], a[4], a[5]);
    floats(&c, a[0], a[3], a[4], a[5], a[6]);
    floats(&c, a[1], a[3], a[4], a[5], a[7]);
    if (a[2]) memory(&c, a[2], 4 * (uint64_t)a[5]);
    break;
  case OP_QUANTIZE:
    rows(&c, a[3], 1, a[5]);
    k = dim(&c, a[4], 256);
    require(&c, a[5] <= a[4], STATUS_SIZE);
    memory(&c, a[0], 2 * k * a[3]);
    memory(&c, a[1], 4 * (uint64_t)a[3]);
    floats(&c, a[2], a[3], 1, a[5], a[6]);
    break;
  case OP_SCALE:
    rows(&c, a[5], 1, a[6]);
    floats(&c, a[0], a[5], 1, a[6], a[7]);
    floats(&c, a[1], a[5], 1, a[6], a[8]);
    memory(&c, a[2], 4 * (uint64_t)a[5]);
    memory(&c, a[3], 4 * (uint64_t)a[6]);
    if (a[4]) memory(&c, a[4], 4 * (uint64_t)a[6]);
    break;
  case OP_ADD:
    rows(&c, a[2], 1, a[3]);
    floats(&c, a[0], a[2], 1, a[3], a[4]);
    floats(&c, a[1], a[2], 1, a[3], a[5]);
    break;
  case OP_ROPE:
    rows(&c, a[2], a[3], a[4]);
    k = dim(&c, a[5], 32);
    count(&c, a[6], 1, MAX_DIM);
    require(&c, a[6] < 32 ? !(a[6] & (a[6] - 1)) : a[6] % 32 == 0, STATUS_SIZE);
    require(&c, a[5] <= a[4] && (a[6] < 32 || a[5] == 2 * a[6]), STATUS_SIZE);
    floats(&c, a[0], a[2], a[3], a[4], a[7]);
    memory(&c, a[1], 8 * k * a[2]);
    break;
  case OP_GLU:
    require(&c, a[7] <= GLU_ERF_ALONE, STATUS_NUMBER);
    if (a[7] == GLU_CLAMPED) require(&c, a[8] < INFINITE && (a[9] & ~SIGN) < INFINITE && (a[10] & ~SIGN) < INFINITE, STATUS_NUMBER);
    rows(&c, a[3], 1, a[4]);
    floats(&c, a[0], a[3], 1, a[4], a[5]);
    floats(&c, a[1], a[3], 1, a[4], a[6]);
    floats(&c, a[2], a[3], 1, a[4], a[6]);
    break;
  case OP_TO_TILES:
    rows(&c, a[2], a[3], a[4]);
    count(&c, a[2], 1, 32);
    count(&c, a[7], 0, 32 - a[2]);
    count(&c, a[8], 0, 1);
    require(&c, a[6] % ALIGN == 0 && a[6] <= MAX_STRIDE, STATUS_SIZE);
    memory(&c, a[0], (uint64_t)(a[3] - 1) * a[6] + (uint64_t)a[4] / 32 * TILE_BYTES);
    floats(&c, a[1], a[2], a[3], a[4], a[5]);
    break;
  case OP_FROM_TILES:
    rows(&c, a[3], 1, a[4]);
    count(&c, a[3], 1, 32);
    count(&c, a[6], 0, 32 - a[3]);
    count(&c, a[8], 0, 1);
    floats(&c, a[0], a[3], 1, a[4], a[5]);
    memory(&c, a[1], (uint64_t)a[4] / 32 * TILE_BYTES);
    memory(&c, a[2], 128);
    memory(&c, a[7], 128);
    break;
  case OP_FOLD:
    count(&c, a[3], 0, 1);
    memory(&c, a[0], 128);
    memory(&c, a[1], 32 * sizeof(struct softmax_state));
    if (a[2]) memory(&c, a[2], 32 * sizeof(struct softmax_state));
    break;
  case OP_SOFT_CAP:
    n = tiles(&c, a[2], 1);
    tcm(&c, a[0], n * TILE_BYTES, ALIGN);
    tcm(&c, a[1], EXP_TABLE_BYTES, EXP_TABLE_BYTES);
    break;
  case OP_LAYER_NORM:
    rows(&c, a[4], 1, a[5]);
    floats(&c, a[0], a[4], 1, a[5], a[6]);
    floats(&c, a[1], a[4], 1, a[5], a[7]);
    memory(&c, a[2], 4 * (uint64_t)a[5]);
    memory(&c, a[3], 4 * (uint64_t)a[5]);
    break;
  case OP_ROWS_TO_TILES:
    rows(&c, a[3], 1, a[5]);
    k = dim(&c, a[4], 64);
    require(&c, a[5] <= a[4], STATUS_SIZE);
    memory(&c, a[0], 64 * k * tiles_of(a[3]));
    memory(&c, a[1], 4 * (uint64_t)a[3]);
    floats(&c, a[2], a[3], 1, a[5], a[6]);
    break;
  case OP_TILES_TO_ROWS:
    rows(&c, a[5], 1, a[6]);
    m = dim(&c, a[6], 64);
    count(&c, a[9], 0, 1);
    floats(&c, a[0], a[5], 1, a[6], a[7]);
    memory(&c, a[1], m / 32 * tiles_of(a[5]) * TILE_BYTES);
    memory(&c, a[2], 4 * (uint64_t)a[5]);
    memory(&c, a[3], 4 * m);
    if (a[4]) memory(&c, a[4], 4 * m);
    break;
  case OP_MUL:
    rows(&c, a[3], 1, a[4]);
    floats(&c, a[0], a[3], 1, a[4], a[5]);
    floats(&c, a[1], a[3], 1, a[4], a[6]);
    floats(&c, a[2], a[3], 1, a[4], a[7]);
    break;
  case OP_CONV:
    count(&c, a[8], 2, MAX_TAPS);
    rows(&c, a[4], 1, a[5]);
    floats(&c, a[0], a[4], 1, a[5], a[6]);
    floats(&c, a[1], a[4], 1, a[5], a[7]);
    memory(&c, a[2], 4 * (uint64_t)a[8] * a[5]);
    memory(&c, a[3], 4 * (uint64_t)(a[8] - 1) * a[5]);
    count(&c, a[9], 0, 1);
    break;
  case OP_GATES:
    rows(&c, a[3], 1, a[4]);
    floats(&c, a[0], a[3], 1, a[4], a[5]);
    floats(&c, a[1], a[3], 1, a[4], a[6]);
    memory(&c, a[2], 12 * (uint64_t)a[4]);
    break;
  case OP_DELTA: delta(&c, a); break;
  default: return STATUS_OP;
  }
  return c.status;
}

static float number(uint32_t bits) {
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}

// collect begins an OP_COLLECT. It reads the table again, which the host may have written
// meanwhile. Pieces may be what the device has written: they come through the caches.
static uint32_t collect(const struct memory *m, const struct packet *p) {
  const uint32_t *a = p->args;
  const volatile uint32_t *table = (const volatile uint32_t *)(m->base + a[1]);
  struct check c = {m->size, STATUS_OK};
  uint8_t *to = at(m, a[0]);
  uint32_t number = 0;
  for (uint32_t n = 0; n < a[2]; n++, to += a[5]) {
    const uint32_t from = *table++;
    if (!piece(&c, from, a)) break;
    number = dma_push(0, to, m->base + (from + a[4]), a[3], 0);
  }
  if (number) flow_add(p, m, FLOW_DMA, number);
  return c.status;
}

// product returns shard i of an OP_GEMV.
static struct gemv product(const struct operation *o, int shard) {
  const struct memory *m = o->memory;
  const uint32_t *a = o->packet->args, from = first_of(o, shard), n = first_of(o, shard + 1) - from;
  const int bytes = gemv_bytes(a), listed = bytes && a[8] == 4;
  const uint32_t unit = gemv_strips(a) * 128, left = a[6] - from * unit; // rows
  const uint32_t codes = unit / 8 * a[8] * a[7], scales = unit * 2 * (a[7] >> group_shift(a[9])), tile = (uint32_t)gemv_buffer(a);
#define MOVED(i, bytes) ((void *)((uint8_t *)at(m, a[i]) + (uint64_t)from * (bytes)))
  return (struct gemv){MOVED(0, 4 * unit), 4 * a[6], MOVED(1, codes), at(m, a[2]), MOVED(4, scales), a[5] ? MOVED(5, scales) : 0,
                       (int)(left < n * unit ? left : n * unit), (int)a[7], (int)a[8], (int)a[9], listed ? 1 : (int)a[10], listed ? BYTE_ZERO : (int)a[11], (int)a[3],
                       table(a[7], bytes), table_row(a[7], bytes), listed ? at(m, a[11]) : 0, MOVED(12, 4 * unit * a[3]),
                       (uint8_t *)at(m, a[12]) + pages((uint64_t)4 * a[6] * a[3]) + (uint32_t)shard * GEMV_BUFFERS * tile, tile, (int)gemv_strips(a), (int)a[14], shard};
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
  if (q && !check(q, o.memory)) next = cut(q, o.memory), o.next = &next;
  run(&o);
}

uint32_t run_packet(const struct packet *p, const struct packet *end, const struct memory *m) {
  flow_settle(p, m); // a check reads the table of an OP_COLLECT
  const uint32_t *a = p->args, status = of_tile_unit(p) && !m->tiles ? STATUS_OP : check(p, m);
  if (status) return status;
  switch (p->op) {
  case OP_COPY: flow_add(p, m, FLOW_DMA, dma_push(0, at(m, a[0]), at(m, a[1]), a[2], 0)); return STATUS_OK;
  case OP_COLLECT: return collect(m, p);
  case OP_TILE_MUL:
    flow_add(p, m, FLOW_TILES, m->tiles->push(&(struct tile_mul){at(m, a[0]), at(m, a[1]), at(m, a[2]), (int)a[3], at(m, a[4]), at(m, a[5]), (int)a[6], (int)a[7],
                                                                (int)a[8], (uint16_t)a[9], 0, at(m, a[10])}));
    return STATUS_OK;
  case OP_TILE_MUL_BYTES:
    flow_add(p, m, FLOW_TILES, m->tiles->push(&(struct tile_mul){.out = at(m, a[0]), .act0 = at(m, a[1]), .wgt0 = at(m, a[2]), .k0 = (int)a[3], .rows = (int)a[4],
                                                                .cols = (int)a[5], .columns = at(m, a[6]), .bytes = 1}));
    return STATUS_OK;
  }
  const struct operation o = cut(p, m);
  if (p->op == OP_GEMV && m->ahead) run_before(o, end);
  else run(&o);
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
