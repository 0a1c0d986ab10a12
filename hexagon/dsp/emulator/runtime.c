#include "runtime.h"

// For the test that what is committed was made of these sources.
__attribute__((used)) static const char sources[] = "made of sources " LUTRA_SOURCES;

// The compiler calls these two by itself.
void *memcpy(void *restrict d, const void *restrict s, size_t n) {
  uint8_t *p = d;
  const uint8_t *q = s;
  while (n--) *p++ = *q++;
  return d;
}

void *memset(void *d, int c, size_t n) {
  uint8_t *p = d;
  while (n--) *p++ = (uint8_t)c;
  return d;
}

static long call(long n, long a, long b, long c, long d, long e, long f) {
  register long r0 __asm__("r0") = a;
  register long r1 __asm__("r1") = b;
  register long r2 __asm__("r2") = c;
  register long r3 __asm__("r3") = d;
  register long r4 __asm__("r4") = e;
  register long r5 __asm__("r5") = f;
  register long r6 __asm__("r6") = n;
  __asm__ volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(r6) : "memory");
  return r0;
}

long rt_read(int fd, void *p, size_t n) { return call(63, fd, (long)p, (long)n, 0, 0, 0); }
long rt_write(int fd, const void *p, size_t n) { return call(64, fd, (long)p, (long)n, 0, 0, 0); }

enum { PAGE = 1 << 16, MMAP = 222, PRIVATE = 2, THERE = 16, ANONYMOUS = 32, NO_RESERVE = 1 << 14 };
static void *mapped(long r) { return (unsigned long)r > (unsigned long)-4096 ? 0 : (void *)r; }

void *rt_map(int fd, uint32_t from, size_t n) {
  uint8_t *room = mapped(call(MMAP, 0, (long)(n + 2 * PAGE), 0 /* no access */, PRIVATE | ANONYMOUS | NO_RESERVE, -1, 0));
  return room ? mapped(call(MMAP, (long)(room + PAGE), (long)n, 3 /* read and write */, THERE | 1 /* shared */, fd, (long)(from / 4096))) : 0;
}

void *rt_memory(size_t n) {
  return mapped(call(MMAP, 0, (long)n, 3, PRIVATE | ANONYMOUS, -1, 0));
}
void *rt_own(void *p, size_t n) { return mapped(call(MMAP, (long)p, (long)n, 3, PRIVATE | ANONYMOUS | THERE, -1, 0)); }
void rt_free(void *p, size_t n) { call(215, (long)p, (long)n, 0, 0, 0, 0); }

void rt_protect(void *p, size_t n, int on) { call(226, (long)p, (long)n, on ? 0 : 3, 0, 0, 0); }

static void (*on_segmentation)(uint32_t);
static void segmentation(int signal, const uint32_t *info, void *context) {
  (void)signal, (void)context;
  on_segmentation(info[3]); // si_addr
}

void rt_on_segmentation(void (*f)(uint32_t address)) {
  static struct {
    void (*handler)(int, const uint32_t *, void *);
    unsigned long flags, restorer;
    uint64_t mask;
  } action = {segmentation, 4 /* with info */, 0, 0};
  on_segmentation = f;
  call(134, 11, (long)&action, 0, sizeof action.mask, 0, 0);
}

void rt_wait(uint32_t *word, uint32_t value) { call(98, (long)word, 0, (long)value, 0, 0, 0); }
void rt_wake(uint32_t *word) { call(98, (long)word, 1, 1 << 30, 0, 0, 0); }

// The child begins with the stack that it is given, on which lie what to call, and with what.
__attribute__((naked, used)) static long clone(long flags, void *stack, uint32_t *parent, uint32_t *id) {
  __asm__ volatile(
      "{ r6 = #220 }\n{ trap0(#1) }\n{ p0 = cmp.eq(r0, #0)\n  if (!p0.new) jumpr:nt r31 }\n"
      "{ r1 = memw(r29 + #0)\n  r0 = memw(r29 + #4) }\n{ callr r1 }\n{ r6 = #93\n  r0 = #0 }\n{ trap0(#1) }\n");
}

int rt_thread(void (*run)(void *), void *p, void *stack, size_t n, uint32_t *id) {
  void **top = (void **)((uint8_t *)stack + n - 128);
  top[0] = (void *)run, top[1] = p;
  *id = 1;
  return clone(0x250f00 /* shares all; a thread; clears id in the end */, top, 0, id) < 0;
}

void rt_exit(int code) {
  call(94, code, 0, 0, 0, 0, 0);
  for (;;) {}
}

__attribute__((noreturn, used)) void rt_main(void) { rt_exit(main()); }

// Linux enters with r29 = sp; vectors on the stack want it aligned.
__attribute__((naked, noreturn)) void _start(void) { __asm__ volatile("{ r29 = and(r29, #-128) }\n{ call rt_main }\n"); }
