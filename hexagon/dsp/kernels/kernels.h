// The kernels of the device; hexagon/device/protocol.go says what each computes.
// Pointers are aligned to 128 bytes and every size has been checked.
#pragma once
#include <stdint.h>

void precompute(int16_t *tables, int32_t *sums, const int16_t *x, int K);
void precompute_bytes(uint8_t *bytes, int32_t *sums, const int16_t *x, int K);

struct gemv {
  int32_t *y; // of rows of activations, stride bytes apart
  uint32_t stride;
  const uint8_t *weights;
  const void *tables; // of rows, each what precompute makes, or precompute_bytes for codes in bytes, and sums
  const int16_t *scales, *offsets; // offsets may be 0; both are when group == K
  int M, K, bits, group;
  int A, B;
  int rows;           // of activations
  uint32_t table, row; // bytes of a row's tables, and from one row's to the next
  const uint8_t *values; // of codes of 4 bits in bytes; 0: none
  // In TCM: sums of all rows of both kinds, and GEMV_BUFFERS, buffer bytes apart, each for a tile.
  int32_t *spill;
  uint8_t *buffers;
  uint32_t buffer;
  int strips, cols; // of a tile; at most GEMV_STRIPS, and a multiple of 256
  int engine;       // of DMA
};
enum { GEMV_STRIPS = 64, GEMV_BUFFERS = 3 };
// gemv has the first tiles of next brought while it ends, unless next is 0: its engine's next gemv must be that. gemv_forget
// waits for tiles whose product has not come.
void gemv(const struct gemv *g, const struct gemv *next);
void gemv_forget(void);

struct dequant {
  uint16_t *tiles;
  const uint8_t *weights;
  const int16_t *scales, *offsets; // offsets may be 0; both are when group == K
  const uint16_t *values;
  int strip, first, n, K, bits, group;
  int bytes; // codes stand in bytes: those of 8 bits, and of 4
  int row; // blocks of a row of tiles, of which n are made
};
void dequant(const struct dequant *d);

// byte_tiles makes tiles of bytes, [2][2·all], of n of a strip's all blocks of codes.
void byte_tiles(uint8_t *tiles, const uint8_t *codes, int n, int all, int bits);

void vlut16(uint16_t *dst, const uint8_t *groups, int n, const uint16_t *values);

void exp_table(uint16_t *table, int first, int end); // numbers [first, end)

// A row of a softmax: see OpSoftmax.
struct softmax_state {
  uint32_t max, valid, decay, sum_low, sum_high, zero;
};
// softmax computes pairs [first, last) of rows, 16 a tile.
void softmax(uint16_t *scores, const uint16_t *table, struct softmax_state *states, uint16_t *diag, int first, int last, int keys);

// soft_cap replaces the numbers of tiles of scores by those of a table at their bits without the sign.
void soft_cap(uint16_t *scores, const uint16_t *table, int tiles);

// Rows of float32, stride bytes apart. See kernels/rows.c.
struct rows {
  void *at;
  uint32_t stride;
};
enum { MOST_ACTIVATION = 8191, GLU_SILU = 0, GLU_GELU, GLU_RELU2, GLU_CLAMPED, GLU_SIGMOID, GLU_ERF_GELU, GLU_ERF_ALONE };
void rms_norm(const struct rows *dst, const struct rows *src, const float *weight, int n, int parts, int width, float inverse, float eps);
void layer_norm(const struct rows *dst, const struct rows *src, const float *weight, const float *bias, int n, int width, float inverse, float eps);
void quantize(int16_t *dst, float *scales, const struct rows *src, int n, int K, int width);
void scale_sums(const struct rows *dst, const struct rows *sums, const float *scales, const float *r, const float *bias, int n, int width);
void add_rows(const struct rows *dst, const struct rows *src, int n, int width, float factor);
void mul_rows(const struct rows *dst, const struct rows *a, const struct rows *b, int n, int width);
// conv has weights and a state whose rows are pitch bytes apart.
void conv(const struct rows *dst, const struct rows *src, const float *weights, float *state, uint32_t pitch, int n, int width, int taps, int silu);
// gates has weights in three rows, pitch bytes apart.
void gates(const struct rows *dst, const struct rows *src, const float *weights, uint32_t pitch, int n, int width);
struct delta {
  struct rows dst, x, gates;
  const float *from; // 0: zeros
  float *to;
  int n, keys, share, width, decay, beta, grouped;
};
// delta_rule computes panels [first, end) of all heads of values.
void delta_rule(const struct delta *d, int first, int end);
void rope(const struct rows *rows, const float *angles, int n, int parts, int width, int rotated, int distance);
// glu's limit, alpha and plus are of GLU_CLAMPED.
void glu(const struct rows *dst, const struct rows *gate, const struct rows *up, int n, int width, int unit, float limit, float alpha, float plus);
void to_tiles(uint16_t *dst, const struct rows *src, int n, int parts, int width, uint32_t step, int first, int across, float factor);
void from_tiles(const struct rows *dst, const uint16_t *tiles, const float *sums, void *saturated, int n, int width, int first, int across);
void rows_to_tiles(uint16_t *dst, float *scales, const struct rows *src, int n, int K, int width);
// tiles_to_rows has tiles of columns columns, of which it takes those of n rows.
void tiles_to_rows(const struct rows *dst, const uint16_t *tiles, const float *scales, const float *r, const float *bias, int n, int width, int columns, float factor, int more);
void fold(float *sums, const struct softmax_state *states, struct softmax_state *next, int begins);
