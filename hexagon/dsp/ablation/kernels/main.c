// Runs each kernel once for warmth and once to count, and prints a line for each:
//
//	name units packets instructions vector
//
// A line "check name mismatches" says how many numbers of a kernel without floats are
// wrong.
#include "../../emulator/machine.h"
#include "ablation.h"

enum { K = 512, BLOCKS = K / BLOCK, MOST = 128 * K };

static uint16_t tiles[MOST] ALIGNED, other[MOST] ALIGNED, table[32768] __attribute__((aligned(65536)));
enum { STRIPS = 4 }; // of lookups: tables stay in registers for all of them
static uint8_t weights[STRIPS * MOST] ALIGNED, groups[MOST / 32 * GROUP_BYTES + 256] ALIGNED;
static int16_t scales[STRIPS * STRIP * K / 32] ALIGNED, offsets[STRIPS * STRIP * K / 32] ALIGNED, x[K] ALIGNED, tables[K / TABLE_COLS * 1024 + K / 16] ALIGNED; // and sums
enum { ROWS = 4 };       // of activations, at most
static int32_t y[ROWS * STRIPS * STRIP] ALIGNED;
static int32_t spill[ROWS * STRIPS * STRIP] ALIGNED;
static uint8_t buffers[GEMV_BUFFERS][1 << 19] ALIGNED;
static uint16_t values[64] ALIGNED;
static V words[64] ALIGNED;

static char line[256];
static uint32_t end;

static void text(const char *s) {
  while (*s && end < sizeof line) line[end++] = *s++;
}
static void number(uint32_t n) {
  char digits[10];
  int i = 0;
  do digits[i++] = (char)('0' + n % 10); while (n /= 10);
  while (i && end < sizeof line) line[end++] = digits[--i];
}
static void flush(void) {
  text("\n");
  rt_write(1, line, end);
  end = 0;
}
// report says what was counted, without what the machine took that a chip does not.
static void report(const char *name, uint32_t units, struct rt_count a, struct rt_count b) {
  text(name), text(" "), number(units), text(" "), number(b.packets - a.packets), text(" ");
  number(b.instructions - a.instructions), text(" "), number(b.vector - a.vector), flush();
}
static void check(const char *name, uint32_t wrong) { text("check "), text(name), text(" "), number(wrong), flush(); }

#define COUNT(name, units, call)                                      \
  do {                                                                \
    call;                                                             \
    const struct rt_count hidden = machine.hidden, from = rt_count(); \
    call;                                                             \
    const struct rt_count to = rt_count();                            \
    report(name, units, rt_since(hidden, machine.hidden), rt_since(from, to)); \
  } while (0)

static uint32_t seed = 1;
static uint32_t rnd(void) {
  seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
  return seed;
}

static uint32_t differing(const uint16_t *a, const uint16_t *b, int n) {
  uint32_t wrong = 0;
  for (int i = 0; i < n; i++) wrong += a[i] != b[i];
  return wrong;
}

static void products(void) {
  COUNT("precompute", K / TABLE_COLS, precompute(tables, (int32_t *)(tables + 4 * K), x, K));
  static const char *names[] = {"gemv-1", "gemv-2", "", "gemv-4"}, *grouped[] = {"gemv-1-grouped", "gemv-2-grouped", "", "gemv-4-grouped"};
  static const char *flats[] = {"dequant-1-flat", "dequant-2-flat", "", "dequant-4-flat"}, *lut[] = {"dequant-1", "dequant-2", "", "dequant-4"};
  for (int bits = 1; bits <= 4; bits *= 2) {
    struct gemv g = {y, 0, weights, tables, 0, 0, STRIPS * STRIP, K, bits, K, 1, 0, 1, 8 * K, 0, 0, spill, buffers[0], sizeof buffers[0], STRIPS, K, 0};
    COUNT(names[bits - 1], (uint32_t)(STRIPS * K / 8 * bits), gemv(&g, 0));
    g.scales = scales, g.offsets = offsets, g.group = 64;
    COUNT(grouped[bits - 1], (uint32_t)(STRIPS * K / 64), gemv(&g, 0));
    struct dequant d = {tiles, weights, 0, 0, values, 0, 0, BLOCKS, K, bits, K, 0, BLOCKS};
    COUNT(flats[bits - 1], BLOCKS, dequant(&d));
    d.scales = scales, d.offsets = offsets, d.group = 64;
    COUNT(lut[bits - 1], BLOCKS, dequant(&d));
  }
}

// sharing counts lookups of two and of four rows, which read the same tables here.
static void sharing(void) {
  static const char *names[2][4] = {{"gemv-1-2-rows", "gemv-2-2-rows", "", "gemv-4-2-rows"}, {"gemv-1-4-rows", "gemv-2-4-rows", "", "gemv-4-4-rows"}};
  static const char *grouped[2][4] = {{"gemv-1-grouped-2-rows", "gemv-2-grouped-2-rows", "", "gemv-4-grouped-2-rows"}, {"gemv-1-grouped-4-rows", "gemv-2-grouped-4-rows", "", "gemv-4-grouped-4-rows"}};
  for (int four = 0; four < 2; four++)
    for (int bits = 1; bits <= 4; bits *= 2) {
      struct gemv g = {y, STRIPS * STRIP * 4, weights, tables, 0, 0, STRIPS * STRIP, K, bits, K, 1, 0, four ? 4 : 2, 8 * K, 0, 0, spill, buffers[0], sizeof buffers[0], STRIPS, K, 0};
      COUNT(names[four][bits - 1], (uint32_t)(STRIPS * K / 8 * bits), gemv(&g, 0));
      g.scales = scales, g.offsets = offsets, g.group = 64;
      COUNT(grouped[four][bits - 1], (uint32_t)(STRIPS * K / 64), gemv(&g, 0));
    }
}

// bytes counts codes in bytes, of 8 bits and of 4 that stand for values, with scales of 64 and of
// 128 columns.
static void bytes(void) {
  static const char *names[2][2] = {{"gemv-8-64", "gemv-8-128"}, {"gemv-values-64", "gemv-values-128"}};
  static const char *flat[] = {"dequant-8", "dequant-values"};
  COUNT("precompute-bytes", K / TABLE_COLS, precompute_bytes((uint8_t *)tables, (int32_t *)(tables + K), x, K));
  for (int four = 0; four < 2; four++) {
    const int bits = four ? 4 : 8;
    for (int i = 0; i < 2; i++) {
      struct gemv g = {y, 0, weights, tables, scales, 0, STRIPS * STRIP, K, bits, 64 << i, 1, 128, 1, 2 * K, 0, four ? (const uint8_t *)values : 0, spill, buffers[0], sizeof buffers[0], STRIPS, K, 0};
      COUNT(names[four][i], (uint32_t)(STRIPS * K / 8 * bits), gemv(&g, 0));
    }
    struct dequant d = {tiles, weights, scales, 0, values, 0, 0, BLOCKS, K, bits, 64, 1, BLOCKS};
    COUNT(flat[four], BLOCKS, dequant(&d));
  }
}

static void conversions(void) {
  static const char *names[] = {"convert-2", "convert-4"};
  for (int i = 0; i < 2; i++) {
    const int bits = 2 + 2 * i;
    for (int v = 0; v < 16; v++) values[v] = (uint16_t)v; // lookups of codes give codes
    struct dequant d = {tiles, weights, 0, 0, values, 0, 0, BLOCKS, K, bits, K, 0, BLOCKS};
    dequant(&d);
    convert_dq(other, weights, words, words, BLOCKS, bits, 0);
    check(names[i], differing(tiles, other, STRIP * K));
    COUNT(names[i], BLOCKS, convert_dq(tiles, weights, words, words, BLOCKS, bits, 1));
  }
}

// layouts compares three ways to the same numbers, in units of 256 weights. The checks
// hold as long as the stand-in of a product depends on its factors alone.
static void layouts(void) {
  enum { N = 32 * K };
  static uint8_t super[N / 256 * 144] ALIGNED;
  for (int g = 0; g < N / 32; g++)
    for (int i = 0; i < GROUP_BYTES; i++) groups[g * GROUP_BYTES + i] = (uint8_t)(rnd() >> 9);
  for (int g = 0; g < N / 256; g++) // the same groups as super-groups
    for (int i = 0; i < 8; i++) {
      const uint8_t *from = groups + (g * 8 + i) * GROUP_BYTES;
      uint8_t *to = super + g * 144;
      to[2 * i] = from[0], to[2 * i + 1] = from[1];
      for (int e = 0; e < 32; e++) {
        int at = 32 * i + e, code = e < 16 ? from[2 + e] & 15 : from[2 + e - 16] >> 4;
        uint8_t *byte = to + 16 + 2 * (at % 64) + (at / 64 & 1);
        *byte = (uint8_t)(at < 128 ? (*byte & 0xf0) | code : (*byte & 15) | code << 4);
      }
    }
  COUNT("super-groups", N / 256, vlut16(tiles, super, N / 256, values));
  COUNT("tile-groups", N / 256, aos_dequant(other, groups, N / 32, values));
  check("tile-groups", differing(tiles, other, N));
  for (int i = 0; i < N; i++) other[i] = 0;
  COUNT("conventional-groups", N / 256, scatter_dequant(other, groups, K, values));
  uint32_t wrong = 0;
  for (int row = 0; row < 32; row++)
    for (int c = 0; c < K; c++) wrong += tiles[row * K + c] != other[c / 32 * TILE + c % 32 / 2 * 64 + 2 * row + c % 2];
  check("conventional-groups", wrong);
  COUNT("no-dequantisation", N / 256, copy(tiles, super, N / 256 * 144));
}

static void exponentials(void) {
  enum { N = 4096 };
  exp_table(table, 0, 32768);
  for (int i = 0; i < N; i++) other[i] = (uint16_t)(0x8000 | rnd() % 0x4e00);
  COUNT("exp-f32", N / 64, exp_f32(tiles, other, N));
  COUNT("exp-f16", N / 64, exp_f16(tiles, other, N));
  COUNT("exp-lut", N / 64, exp_lut(tiles, other, N, table));
  uint32_t wrong = 0;
  for (int i = 0; i < N; i++) wrong += tiles[i] != table[other[i] & 0x7fff];
  check("exp-lut", wrong);
  enum { KEYS = 32 };
  static struct softmax_state states[32];
  static uint16_t diag[TILE] ALIGNED;
  for (int i = 0; i < 32; i++) states[i] = (struct softmax_state){0xfbff, KEYS * 32, 0, 0, 0, 0};
  COUNT("softmax", KEYS * TILE / 64, softmax(tiles, table, states, diag, 0, 16, KEYS));
}

static void lookups(void) {
  enum { N = 256 };
  static uint16_t t[128] ALIGNED;
  static int32_t a[STRIP] ALIGNED;
  for (int i = 0; i < 128; i++) t[i] = (uint16_t)rnd();
  for (int i = 0; i < N * LINE; i++) weights[i] = (uint8_t)(rnd() >> 8);
  COUNT("vlut16-h", N, sum_vlut16_h(a, weights, N, t));
  uint32_t wrong = 0;
  for (int b = 0; b < LINE; b++) {
    int32_t want = 0;
    for (int i = 0; i < N; i++) want += (int16_t)t[2 * (weights[i * LINE + b] & 15)] + (int16_t)t[64 + 2 * (weights[i * LINE + b] >> 4)];
    wrong += want != a[(b & 1) * 64 + (b >> 1 & 1) * 32 + (b >> 2)];
  }
  check("vlut16-h", wrong);
  COUNT("vlut16-b", N, sum_vlut16_b((int16_t *)a, weights, N, t));
  COUNT("vlut32-h", N, sum_vlut32_h(a, weights, N, (const uint8_t *)t));
  COUNT("vlut32-b", N, sum_vlut32_b((int16_t *)a, weights, N, (const uint8_t *)t));
}

int main(void) {
  machine_open((void *)0x80000000u); // nothing here is TCM, which makes no difference to counts
  for (int i = 0; i < STRIPS * MOST; i++) weights[i] = (uint8_t)(rnd() >> 7);
  for (int i = 0; i < K; i++) x[i] = (int16_t)(rnd() % 8191);
  for (int i = 0; i < STRIPS * STRIP * K / 32; i++) scales[i] = (int16_t)rnd(), offsets[i] = (int16_t)rnd();
  for (int i = 0; i < 16; i++) values[i] = (uint16_t)(0x3c00 + 64 * i);
  products();
  conversions();
  layouts();
  exponentials();
  lookups();
  bytes();
  sharing();
  return 0;
}
