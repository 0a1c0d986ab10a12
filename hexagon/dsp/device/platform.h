// What the library for the DSP needs of its system. platform_sdk.c has it from the
// Hexagon SDK, emulator/skel.c from the stand-in.
#pragma once
#include "../dispatch/dispatch.h"

// FastRPC's arguments of a call, and the calls of its request queue; the names and
// types are those of the public headers remote.h and dspqueue.h.
typedef struct {
  void *pv;
  uint32_t nLen;
} remote_buf;

typedef union {
  remote_buf buf;
  uint64_t h64;
} remote_arg;

typedef struct dspqueue *dspqueue_t;
struct dspqueue_buffer {
  uint32_t fd, size, offset, flags;
  uint64_t at; // its address on this side
};
typedef void (*dspqueue_callback_t)(dspqueue_t queue, int error, void *context);
int dspqueue_import(uint64_t id, dspqueue_callback_t packet, dspqueue_callback_t error, void *context, dspqueue_t *queue);
int dspqueue_close(dspqueue_t queue);
int dspqueue_read_noblock(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *buffers, struct dspqueue_buffer *b,
                          uint32_t max_length, uint32_t *length, uint8_t *message);
int dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t buffers, struct dspqueue_buffer *b, uint32_t length,
                   const uint8_t *message, uint32_t timeout_us);

// platform_open finds the mappings of a memory, each of a file, and TCM, and votes for power. It returns 0
// or an error of FastRPC's. platform_close gives all back.
int platform_open(const int32_t files[MAPPINGS], struct memory *m);
void platform_close(const int32_t files[MAPPINGS], const struct memory *m);

// Threads with vectors: how many there may be; one, below THREADS, with a stack of its own that runs f(p), and
// the end of that one; and the vectors, or the tile unit, of the thread that asks. They return 0 or an error.
enum { STACK_BYTES = 1 << 15, TILE_THREAD = MAX_WORKERS, THREADS };
int platform_vectors(void);
int platform_thread(int i, void (*f)(void *), void *p, uint8_t stack[STACK_BYTES]);
void platform_join(int i);
int platform_lock_vectors(void);
void platform_unlock_vectors(void);
void platform_lock_tiles(void);
void platform_unlock_tiles(void);

// platform_wait waits until the word is woken, if it has that value; platform_wake wakes all that do.
void platform_wait(uint32_t *word, uint32_t value);
void platform_wake(uint32_t *word);

// Lines of the DSP's caches: platform_line writes back the one at an address, and forgets it if drop is not 0; platform_lines does
// so with all that there are. platform_settled waits until memory has what they wrote.
enum { CACHE_LINE = 64 };
void platform_line(void *at, int drop);
void platform_lines(int drop);
void platform_settled(void);

// platform_begin and platform_end stand around the packets of a message, and lock vectors. Where the
// message begins a run, TCM may have been another's; where it ends one, others may have it.
void platform_begin(const struct memory *m, int run);
void platform_end(const struct memory *m, int run);
