// The tile unit's instructions in plain C, for builds without an assembler that knows them:
// sums in float32, in the order of k.
#include "hmx.h"
#ifdef LUTRA_EMULATED
#include "../emulator/machine.h"
#endif

static float of_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
  if (!e) {
    const float f = (float)(int)m * 0x1p-24f;
    return sign ? -f : f;
  }
  const uint32_t u = sign | (e + 112) << 23 | m << 13;
  float f;
  __builtin_memcpy(&f, &u, sizeof f);
  return f;
}

static uint16_t to_half(float f) {
  uint32_t u;
  __builtin_memcpy(&u, &f, sizeof u);
  const uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0;
  if (a >= 0x477fe000) return (uint16_t)(sign | 0x7bff);
  if (a < 0x33000001) return (uint16_t)sign;
  const int e = (int)(a >> 23) - 112;
  const uint32_t m = (a & 0x7fffff) | 0x800000, sh = e >= 1 ? 13u : (uint32_t)(14 - e);
  uint32_t q = m >> sh;
  const uint32_t rest = m & ((1u << sh) - 1), half = 1u << (sh - 1);
  q += rest > half || (rest == half && (q & 1));
  return (uint16_t)(sign | (((uint32_t)(e >= 1 ? e - 1 : 0) << 10) + q));
}

static int at(int r, int c) { return (r >> 1) * 64 + 2 * c + (r & 1); }

static struct {
  float sums[32][32], scales[32];
  int32_t ints[64][32];
} unit;

// reads says that an instruction reads or writes n bytes, aligned to their size.
static void reads(const void *p, uint32_t n, uint32_t align, const char *what) {
#ifdef LUTRA_EMULATED
  if (!machine.tiles) machine_fault("the tile unit is used without its lock");
  if (!machine_in_tcm(p, n) || (uintptr_t)p % align) machine_fault(what);
  if ((((uintptr_t)p + n - 1) ^ (uintptr_t)p) / HMX_WINDOW) machine_fault("HMX reads tiles on both sides of a boundary of 256 KiB");
#else
  (void)p, (void)n, (void)align, (void)what;
#endif
}

void hmx_columns(const uint32_t *words) {
  reads(words, 256, 256, "HMX reads scales of columns that are not in TCM, or not aligned");
  for (int i = 0; i < 32; i++) unit.scales[i] = of_half((uint16_t)words[i]);
}

void hmx_clear(void) {
  for (int i = 0; i < 32; i++)
    for (int j = 0; j < 32; j++) unit.sums[i][j] = 0;
}

void hmx_multiply(const uint16_t *act, const uint16_t *wgt, uint32_t tiles) {
  reads(act, tiles * 2048, 2048, "HMX reads activations that are not in TCM, or not aligned");
  reads(wgt, tiles * 2048, 2048, "HMX reads weights that are not in TCM, or not aligned");
  for (int r = 0; r < 32; r++)
    for (int c = 0; c < 32; c++)
      for (uint32_t k = 0; k < 32 * tiles; k++)
        unit.sums[r][c] += of_half(act[k / 32 * 1024 + (uint32_t)at(r, (int)(k % 32))]) * of_half(wgt[k / 32 * 1024 + (uint32_t)at((int)(k % 32), c)]);
}

void hmx_store(uint16_t *out) {
  reads(out, 2048, 2048, "HMX writes a tile that is not in TCM, or not aligned");
  for (int r = 0; r < 32; r++)
    for (int c = 0; c < 32; c++) out[at(r, c)] = to_half(unit.sums[r][c] * unit.scales[c]);
}

void hmx_clear_sums(void) {
  for (int r = 0; r < 64; r++)
    for (int c = 0; c < 32; c++) unit.ints[r][c] = 0;
}

void hmx_multiply_bytes(const uint8_t *act, const uint8_t *wgt, uint32_t tiles) {
  reads(act, tiles * 2048, 2048, "HMX reads codes that are not in TCM, or not aligned");
  reads(wgt, tiles * 1024, 1024, "HMX reads activations in bytes that are not in TCM, or not aligned");
  for (uint32_t r = 0; r < 64; r++)
    for (uint32_t c = 0; c < 32; c++)
      for (uint32_t k = 0; k < 32 * tiles; k++) unit.ints[r][c] += act[k / 32 * 2048 + 32 * r + k % 32] * (int8_t)wgt[k / 4 * 128 + 4 * c + k % 4];
}

// A column's word has an exponent: its sums leave as their floors by 2^(exponent-24), the lowest 8 bits of them.
void hmx_store_plane(uint8_t *out, const uint32_t *words) {
  reads(words, 128, 128, "HMX reads scales of planes that are not in TCM, or not aligned");
  reads(out, 2048, 2048, "HMX writes a plane that is not in TCM, or not aligned");
  for (int r = 0; r < 64; r++)
    for (int c = 0; c < 32; c++) out[32 * r + c] = (uint8_t)(unit.ints[r][c] >> (24 - (int)(words[c] >> 10 & 31)));
}
