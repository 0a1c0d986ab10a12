#pragma once
#include <stdint.h>

void dma_copy(void *dst, const void *src, uint32_t n);
