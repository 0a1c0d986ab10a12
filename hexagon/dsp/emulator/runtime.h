// What a program needs of Linux under qemu-hexagon: no library, no SDK.
#pragma once
#include <stddef.h>
#include <stdint.h>

long rt_read(int fd, void *p, size_t n);
long rt_write(int fd, const void *p, size_t n);
// rt_map maps n bytes of a file from an offset on, shared, to read and write, between pages that nobody may touch, and
// rt_memory memory of this process; 0 if it fails.
void *rt_map(int fd, uint32_t from, size_t n);
void *rt_memory(size_t n);
void *rt_own(void *p, size_t n); // has pages be of this process, in place of what is mapped there
void rt_free(void *p, size_t n);
void rt_protect(void *p, size_t n, int on); // pages that nobody may touch, or all may
void rt_on_segmentation(void (*f)(uint32_t address)); // f does not return

// rt_thread has a thread run f(p) on a stack of n bytes; id becomes 0, and is woken, when it has
// ended. It returns 0 or an error.
int rt_thread(void (*f)(void *), void *p, void *stack, size_t n, uint32_t *id);
void rt_wait(uint32_t *word, uint32_t value); // until woken, if the word has that value
void rt_wake(uint32_t *word);
void rt_exit(int code) __attribute__((noreturn));

// qemu-hexagon counts packets, instructions and those of HVX in c20..c22, which a
// chip has not. They wrap at 2^32.
struct rt_count {
  uint32_t packets, instructions, vector;
};

static inline __attribute__((always_inline)) struct rt_count rt_count(void) {
  register uint32_t p __asm__("r0"), i __asm__("r1"), v __asm__("r2");
  __asm__ volatile(".word 0x6a14c000\n.word 0x6a15c001\n.word 0x6a16c002" : "=r"(p), "=r"(i), "=r"(v)::"memory");
  return (struct rt_count){p, i, v};
}

static inline __attribute__((always_inline)) struct rt_count rt_since(struct rt_count from, struct rt_count to) {
  return (struct rt_count){to.packets - from.packets, to.instructions - from.instructions, to.vector - from.vector};
}

static inline __attribute__((always_inline)) uint32_t rt_packets(void) {
  register uint32_t p __asm__("r0");
  __asm__ volatile(".word 0x6a14c000" : "=r"(p)::"memory");
  return p;
}

int main(void);
