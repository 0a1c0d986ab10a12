// See HAP_compute_res.h.
#pragma once
#include <stdint.h>
int HAP_mmap_get(int fd, void **at, uint64_t *physical);
int HAP_mmap_put(int fd);
