// Declarations of the Hexagon SDK that platform_sdk.c uses, written from its public reference: enough to compile against.
#pragma once
#include <stdint.h>
typedef struct {
  uint32_t words[64];
} compute_res_attr_t;
int HAP_compute_res_attr_init(compute_res_attr_t *attr);
int HAP_compute_res_attr_set_serialize(compute_res_attr_t *attr, uint8_t serialize);
int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t *attr, uint8_t cached);
int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attr, unsigned size, unsigned min_page, unsigned min_size);
int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attr, void **at, unsigned *size);
int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t *attr, uint8_t enable);
int HAP_compute_res_attr_set_release_callback(compute_res_attr_t *attr, int (*release)(unsigned context, void *data), void *data);
unsigned HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned timeout_us);
int HAP_compute_res_release(unsigned context);
int HAP_compute_res_acquire_cached(unsigned context, unsigned timeout_us);
int HAP_compute_res_release_cached(unsigned context);
int HAP_compute_res_hmx_lock(unsigned context);
int HAP_compute_res_hmx_unlock(unsigned context);
int HAP_compute_res_query_VTCM(unsigned application, unsigned *total, void *total_layout, unsigned *free, void *free_layout);
