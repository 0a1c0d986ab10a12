// The DSP's system by the Hexagon SDK's headers. UNTESTED, and not compiled here: the
// SDK is not free to pass on.
#include <HAP_compute_res.h>
#include <HAP_mem.h>
#include <HAP_power.h>
#include <qurt.h>

#include "hmx.h"
#include "platform.h"

static unsigned resource;
static int client; // its address names us to the power manager

static int vote(int on) {
  HAP_power_request_t r = {0};
  r.type = HAP_power_set_apptype;
  r.apptype = HAP_POWER_COMPUTE_CLIENT_CLASS;
  int error = HAP_power_set(&client, &r);
  r = (HAP_power_request_t){0};
  r.type = HAP_power_set_DCVS_v3;
  r.dcvs_v3.set_dcvs_enable = 1;
  r.dcvs_v3.dcvs_option = HAP_DCVS_V2_PERFORMANCE_MODE;
  r.dcvs_v3.set_bus_params = r.dcvs_v3.set_core_params = 1;
  r.dcvs_v3.bus_params.min_corner = r.dcvs_v3.bus_params.max_corner = r.dcvs_v3.bus_params.target_corner =
      on ? HAP_DCVS_VCORNER_MAX : HAP_DCVS_VCORNER_DISABLE;
  r.dcvs_v3.core_params.min_corner = r.dcvs_v3.core_params.max_corner = r.dcvs_v3.core_params.target_corner =
      on ? HAP_DCVS_VCORNER_MAX : HAP_DCVS_VCORNER_DISABLE;
  error = error ? error : HAP_power_set(&client, &r);
  r = (HAP_power_request_t){0};
  r.type = HAP_power_set_HVX;
  r.hvx.power_up = on;
  error = error ? error : HAP_power_set(&client, &r);
  r = (HAP_power_request_t){0};
  r.type = HAP_power_set_HMX;
  r.hmx.power_up = on;
  return error ? error : HAP_power_set(&client, &r);
}

int platform_open(int fd, struct memory *m) {
  void *base;
  uint64_t physical;
  int error = vote(1);
  if (error) return error;
  if ((error = HAP_mmap_get(fd, &base, &physical))) return error;
  compute_res_attr_t attr;
  HAP_compute_res_attr_init(&attr);
  HAP_compute_res_attr_set_serialize(&attr, 0);
  HAP_compute_res_attr_set_vtcm_param_v2(&attr, TCM_BYTES, HMX_WINDOW, TCM_BYTES); // in pages of at least so many bytes
  HAP_compute_res_attr_set_hmx_param(&attr, 1);
  void *tcm = 0;
  unsigned size = 0;
  if (!(resource = HAP_compute_res_acquire(&attr, 1000000)) || HAP_compute_res_attr_get_vtcm_ptr_v2(&attr, &tcm, &size) || size < TCM_BYTES) {
    platform_close(fd);
    return 1;
  }
  m->base = base, m->tcm = tcm;
  return 0;
}

void platform_close(int fd) {
  if (resource) HAP_compute_res_release(resource);
  resource = 0;
  HAP_mmap_put(fd);
  vote(0);
}

// Bits 8 to 15 are how many contexts of 128 bytes there are.
int platform_vectors(void) { return qurt_hvx_get_units() >> 8 & 255; }

static qurt_thread_t threads[THREADS];

int platform_thread(int i, void (*f)(void *), void *p, uint8_t stack[STACK_BYTES]) {
  qurt_thread_attr_t attr;
  qurt_thread_attr_init(&attr);
  qurt_thread_attr_set_name(&attr, "lutra");
  qurt_thread_attr_set_stack_addr(&attr, stack);
  qurt_thread_attr_set_stack_size(&attr, STACK_BYTES);
  qurt_thread_attr_set_priority(&attr, (unsigned short)qurt_thread_get_priority(qurt_thread_get_id()));
  return qurt_thread_create(&threads[i], &attr, f, p);
}

void platform_join(int i) {
  int status;
  qurt_thread_join(threads[i], &status);
}

// Another session may have the contexts: a thread that waited for one would never answer.
int platform_lock_vectors(void) { return qurt_hvx_try_lock(QURT_HVX_MODE_128B); }
void platform_unlock_vectors(void) { qurt_hvx_unlock(); }
void platform_lock_tiles(void) { HAP_compute_res_hmx_lock(resource); } // is the calling thread's
void platform_unlock_tiles(void) { HAP_compute_res_hmx_unlock(resource); }
void platform_wait(uint32_t *word, uint32_t value) { qurt_futex_wait(word, (int)value); }
void platform_wake(uint32_t *word) { qurt_futex_wake(word, MAX_WORKERS); }

void platform_begin(const struct memory *m, int run) {
  (void)m, (void)run;
  qurt_mem_cache_clean(0, 0, QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL, QURT_MEM_DCACHE);
  qurt_hvx_lock(QURT_HVX_MODE_128B);
}

void platform_end(const struct memory *m) {
  (void)m;
  qurt_hvx_unlock();
  qurt_mem_cache_clean(0, 0, QURT_MEM_CACHE_FLUSH_ALL, QURT_MEM_DCACHE);
}
