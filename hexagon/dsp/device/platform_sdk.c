// The DSP's system by the Hexagon SDK's headers. UNTESTED: the SDK is not free to pass on, so here it is compiled against
// the declarations in stubs.
#include <HAP_compute_res.h>
#include <HAP_mem.h>
#include <HAP_power.h>
#include <qurt.h>
#include <stdatomic.h>

#include "hmx.h"
#include "platform.h"

static int client; // its address names us to the power manager

// What a session has of the chip's TCM and tile unit. Another program's session may ask for them, and gets them between runs:
// held says whether they are ours, asked whether somebody waits, running whether a run may be under way.
static struct {
  unsigned context;
  _Atomic int held, asked, running;
} unit;

static int give_back(void) {
  int held = 1;
  if (!atomic_compare_exchange_strong(&unit.held, &held, 0)) return 0;
  unit.asked = 0;
  return HAP_compute_res_release_cached(unit.context);
}

static int on_release(unsigned context, void *data) {
  (void)context, (void)data;
  unit.asked = 1;
  return unit.running ? 0 : give_back();
}

static int vote(int on) {
  HAP_power_request_t r = {0};
  r.type = HAP_power_set_apptype;
  r.apptype = HAP_POWER_COMPUTE_CLIENT_CLASS;
  int error = HAP_power_set(&client, &r);
  r = (HAP_power_request_t){0};
  r.type = HAP_power_set_DCVS_v3;
  r.dcvs_v3.set_dcvs_enable = 1, r.dcvs_v3.dcvs_enable = !on;
  r.dcvs_v3.dcvs_option = HAP_DCVS_V2_PERFORMANCE_MODE;
  r.dcvs_v3.set_sleep_disable = 1, r.dcvs_v3.sleep_disable = on != 0;
  r.dcvs_v3.set_bus_params = r.dcvs_v3.set_core_params = 1;
  r.dcvs_v3.bus_params.min_corner = r.dcvs_v3.bus_params.max_corner = r.dcvs_v3.bus_params.target_corner =
      on ? HAP_DCVS_VCORNER_MAX : HAP_DCVS_VCORNER_DISABLE;
  r.dcvs_v3.core_params = r.dcvs_v3.bus_params;
  error = error ? error : HAP_power_set(&client, &r);
  r = (HAP_power_request_t){0};
  r.type = HAP_power_set_HVX;
  r.hvx.power_up = on;
  error = error ? error : HAP_power_set(&client, &r);
  r = (HAP_power_request_t){0};
#if LUTRA_ARCH >= 75 // where the tile unit has a clock of its own
  r.type = HAP_power_set_HMX_v2;
  r.hmx_v2.set_power = 1, r.hmx_v2.power_up = on;
  if (on) {
    r.hmx_v2.set_clock = 1, r.hmx_v2.perf_mode = HAP_CLK_PERF_HIGH;
    r.hmx_v2.target_corner = r.hmx_v2.min_corner = r.hmx_v2.max_corner = HAP_DCVS_EXP_VCORNER_MAX;
  }
#else
  r.type = HAP_power_set_HMX;
  r.hmx.power_up = on;
#endif
  return error ? error : HAP_power_set(&client, &r);
}

// Errors of platform_open say which call failed: its number stands above the error. See fastrpc.stages.
enum { STAGE = 1 << 16, POWER = 1, MEMORY, TCM_QUERY, TCM, FAILED = 1, ENOMEMORY = 2 };
static int failed(int stage, int error) { return stage * STAGE | (error & (STAGE - 1) ? error & (STAGE - 1) : FAILED); }

int platform_open(const int32_t files[MAPPINGS], struct memory *m) {
  void *tcm = 0;
  unsigned size = 0;
  int error = vote(1);
  if (error) return failed(POWER, error);
  for (int i = 0; mapping(m->size, i); i++) {
    void *begin;
    uint64_t physical;
    if ((error = HAP_mmap_get(files[i], &begin, &physical))) {
      m->size = (uint64_t)i << MAPPING_BITS; // what there is
      platform_close(files, m);
      return failed(MEMORY, error);
    }
    m->base[i] = (uint8_t *)begin - ((uint32_t)i << MAPPING_BITS);
  }
  if ((error = HAP_compute_res_query_VTCM(0, &size, 0, 0, 0)) || size < TCM_BYTES) {
    platform_close(files, m);
    return failed(TCM_QUERY, error ? error : ENOMEMORY);
  }
  compute_res_attr_t attr;
  HAP_compute_res_attr_init(&attr);
  HAP_compute_res_attr_set_serialize(&attr, 0);
  HAP_compute_res_attr_set_cache_mode(&attr, 1); // it may be given back and had again, at the same address
  HAP_compute_res_attr_set_vtcm_param_v2(&attr, TCM_BYTES, HMX_WINDOW, TCM_BYTES); // in pages of at least so many bytes
  HAP_compute_res_attr_set_release_callback(&attr, on_release, 0);
  HAP_compute_res_attr_set_hmx_param(&attr, 1);
  if (!(unit.context = HAP_compute_res_acquire(&attr, 1000000)) || (error = HAP_compute_res_attr_get_vtcm_ptr_v2(&attr, &tcm, &size)) || size < TCM_BYTES) {
    platform_close(files, m);
    return failed(TCM, error ? error : ENOMEMORY);
  }
  m->tcm = tcm;
  return 0;
}

void platform_close(const int32_t files[MAPPINGS], const struct memory *m) {
  if (unit.context) HAP_compute_res_release(unit.context);
  unit.context = 0, unit.held = unit.asked = unit.running = 0;
  for (int i = 0; mapping(m->size, i); i++) HAP_mmap_put(files[i]);
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
void platform_lock_tiles(void) { HAP_compute_res_hmx_lock(unit.context); } // is the calling thread's
void platform_unlock_tiles(void) { HAP_compute_res_hmx_unlock(unit.context); }
void platform_wait(uint32_t *word, uint32_t value) { qurt_futex_wait(word, (int)value); }
void platform_wake(uint32_t *word) { qurt_futex_wake(word, MAX_WORKERS); }

void platform_line(void *at, int drop) {
  if (drop) __asm__ volatile("dccleaninva(%0)" ::"r"(at) : "memory");
  else __asm__ volatile("dccleana(%0)" ::"r"(at) : "memory");
}
void platform_lines(int drop) { qurt_mem_cache_clean(0, 0, drop ? QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL : QURT_MEM_CACHE_FLUSH_ALL, QURT_MEM_DCACHE); }
void platform_settled(void) { __asm__ volatile("syncht" ::: "memory"); }

// A session that does not get TCM again within ten seconds ends, which the host sees.
void platform_begin(const struct memory *m, int run) {
  (void)m;
  unit.running = 1;
  if (run && unit.asked) give_back();
  int held = 0;
  if (atomic_compare_exchange_strong(&unit.held, &held, 1) && HAP_compute_res_acquire_cached(unit.context, 10000000)) __builtin_trap();
  qurt_hvx_lock(QURT_HVX_MODE_128B);
}

void platform_end(const struct memory *m, int run) {
  (void)m;
  qurt_hvx_unlock();
  if (!run) return; // more of it is to come, in TCM too
  unit.running = 0;
  if (unit.asked) give_back();
}
