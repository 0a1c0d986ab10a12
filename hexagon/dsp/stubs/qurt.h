// See HAP_compute_res.h.
#pragma once
typedef unsigned qurt_thread_t;
typedef struct {
  unsigned words[16];
} qurt_thread_attr_t;
enum { QURT_HVX_MODE_128B = 1, QURT_MEM_DCACHE = 0, QURT_MEM_CACHE_FLUSH_ALL = 4, QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL = 6 };
void qurt_thread_attr_init(qurt_thread_attr_t *attr);
void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, const char *name);
void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack);
void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned bytes);
void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority);
int qurt_thread_create(qurt_thread_t *thread, qurt_thread_attr_t *attr, void (*f)(void *), void *p);
int qurt_thread_join(unsigned thread, int *status);
qurt_thread_t qurt_thread_get_id(void);
int qurt_thread_get_priority(qurt_thread_t thread);
int qurt_hvx_get_units(void);
int qurt_hvx_lock(int mode);
int qurt_hvx_try_lock(int mode);
int qurt_hvx_unlock(void);
int qurt_futex_wait(void *word, int value);
int qurt_futex_wake(void *word, int threads);
int qurt_mem_cache_clean(unsigned at, unsigned bytes, int operation, int cache);
