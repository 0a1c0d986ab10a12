// Kernels that the papers compare theirs with, for counting packets. Where a chip has
// an HVX float instruction, which no emulator executes, there is an integer
// instruction in its place: counts are a chip's, numbers are not. What has no float
// is checked.
#pragma once
#include "../../kernels/hf.h"
#include "../../kernels/hvx.h"
#include "../../kernels/kernels.h"

// convert_dq makes tiles of blocks of 128x64 codes in the bit-serial layout, without
// lookups: shifts and masks, then float instructions in 32 bits (T-MAN's ConvertDQ).
// scales and zeros are words, those of two rows' 64 lanes in two vectors, 64 row pairs.
// Without floats it leaves codes.
void convert_dq(uint16_t *tiles, const uint8_t *weights, const V *scales, const V *zeros, int blocks, int bits, int floats);

// Groups of 32 four-bit weights as Q4_0 stores them: an fp16 scale and 16 bytes, low
// nibbles before high ones.
enum { GROUP_BYTES = 18 };

// aos_dequant makes fp16 of n groups that stand in the order of tiles.
void aos_dequant(uint16_t *dst, const uint8_t *groups, int n, const uint16_t *values);

// scatter_dequant makes tiles of 32 rows of k columns, whose groups run along the
// columns: each pair of groups is scattered to its places in TCM.
void scatter_dequant(uint16_t *tiles, const uint8_t *groups, int k, const uint16_t *values);

// 2^x of n fp16 numbers, -24 <= x <= 0: by a polynomial in 32 bits, in 16 bits, and by
// the table.
void exp_f32(uint16_t *dst, const uint16_t *x, int n);
void exp_f16(uint16_t *dst, const uint16_t *x, int n);
void exp_lut(uint16_t *dst, const uint16_t *x, int n, const uint16_t *table);

// Sums of lookups over lines of indices, one bit a weight.
void sum_vlut16_h(int32_t *sums, const uint8_t *lines, int n, const uint16_t *tables); // 4 columns an index, 16-bit sums
void sum_vlut16_b(int16_t *sums, const uint8_t *lines, int n, const uint16_t *tables); // 4 columns, two 8-bit sums an entry
void sum_vlut32_h(int32_t *sums, const uint8_t *lines, int n, const uint8_t *tables);  // 5 columns, 16-bit sums
void sum_vlut32_b(int16_t *sums, const uint8_t *lines, int n, const uint8_t *tables);  // 5 columns, 8-bit sums

void copy(void *dst, const void *src, uint32_t n);
