// The library for the DSP (device/skel.c) as a program under qemu-hexagon, for tests of
// the host's FastRPC side: what FastRPC and the system do on a DSP is done here by
// frames from the stand-in library (standin/cdsprpc.c) on file 0, answered on file 1.
// TCM is memory that the host does not see, as on a chip.
#include "../device/platform.h"
#include "../kernels/hvx.h"
#include "machine.h"
#include "runtime.h"

enum { INVOKE = 1, MESSAGE, MAP, EFAILED = 1, EWOULDBLOCK = 516, LONGEST = 1 << 16 };

struct frame {
  uint32_t kind, argument, length;
};

static uint8_t payload[LONGEST] __attribute__((aligned(128))), reply[LONGEST];
static struct dspqueue_buffer buffers_in[64], buffers_out[64];
static uint32_t payload_length, reply_length, payload_buffers, reply_buffers; // of a message; 0: taken, none written
static uint8_t tcm[TCM_BYTES] __attribute__((aligned(1 << 16)));
// What the host and the DSP see of each mapping: the DSP's lines are old until they are forgotten, and the host does not see
// what is in them until they are written back. Behind its first bytes both see the same.
enum { CACHED = 1 << 24 };
static struct window {
  uint8_t *shared, *seen;
  uint32_t size;
} windows[MAPPINGS];
static int mapped;
static dspqueue_callback_t on_message;

int lutra_skel_handle_invoke(uint64_t handle, uint32_t scalars, remote_arg *args);

// The stand-in's files have numbers from 3 on, in the order of the mappings.
static int map(int file, uint32_t size) {
  struct window *w = &windows[mapped];
  if (mapped == MAPPINGS) return EFAILED;
  w->shared = rt_map(file, 0, size), w->seen = rt_map(file, 0, size), w->size = size < CACHED ? size : CACHED;
  if (!w->shared || !w->seen || !rt_own(w->seen, w->size)) return EFAILED;
  mapped++;
  return 0;
}

// memory is what caches do not show, for DMA past them.
static const void *memory(const void *p) {
  for (int i = 0; i < mapped; i++) {
    const uint32_t from = (uint32_t)(uintptr_t)p - (uint32_t)(uintptr_t)windows[i].seen;
    if (from < windows[i].size) return windows[i].shared + from;
  }
  return p;
}

int platform_open(const int32_t files[MAPPINGS], struct memory *m) {
  (void)files;
  for (int i = 0; mapping(m->size, i); i++) {
    if (i == mapped) return EFAILED;
    m->base[i] = windows[i].seen - ((uint32_t)i << MAPPING_BITS);
  }
  m->tcm = tcm;
  machine_open(tcm);
  machine.memory = memory;
  return 0;
}
void platform_close(const int32_t files[MAPPINGS], const struct memory *m) { (void)files, (void)m; }
static void copy(uint8_t *d, const uint8_t *s, uint32_t n) {
  for (uint32_t i = 0; i < n; i += 8) *(uint64_t *)(d + i) = *(const uint64_t *)(s + i);
}

// was is what lines held when they were last as memory is: only one that the DSP has changed since is written back.
static uint8_t was[MAPPINGS][CACHED] __attribute__((aligned(128)));
static void line(int i, uint32_t at, int drop) {
  struct window *w = &windows[i];
  uint64_t changed = 0;
  for (uint32_t k = at; k < at + CACHE_LINE; k += 8) changed |= *(uint64_t *)(w->seen + k) ^ *(uint64_t *)(was[i] + k);
  if (changed) copy(w->shared + at, w->seen + at, CACHE_LINE);
  if (drop) copy(w->seen + at, w->shared + at, CACHE_LINE);
  copy(was[i] + at, w->seen + at, CACHE_LINE);
}
void platform_line(void *at, int drop) {
  for (int i = 0; i < mapped; i++) {
    const uint32_t from = (uint32_t)(uintptr_t)at - (uint32_t)(uintptr_t)windows[i].seen;
    if (from % CACHE_LINE) machine_fault("a line that begins within one");
    if (from < windows[i].size) line(i, from, drop);
  }
}
void platform_lines(int drop) {
  for (int i = 0; i < mapped; i++)
    for (uint32_t at = i ? 0 : TCM_BYTES; at < windows[i].size; at += CACHE_LINE) line(i, at, drop);
}
void platform_settled(void) {}
void platform_begin(const struct memory *m, int run) {
  (void)m;
  if (run) machine_poison();
}
void platform_end(const struct memory *m, int run) { (void)m, (void)run, machine_idle(); }

int dspqueue_import(uint64_t id, dspqueue_callback_t packet, dspqueue_callback_t error, void *context, dspqueue_t *queue) {
  (void)error, (void)context;
  on_message = packet;
  *queue = (dspqueue_t)&on_message;
  return id == 42 ? 0 : EFAILED;
}
int dspqueue_close(dspqueue_t queue) {
  (void)queue;
  on_message = 0;
  return 0;
}
int dspqueue_read_noblock(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *buffers, struct dspqueue_buffer *b,
                          uint32_t max_length, uint32_t *length, uint8_t *message) {
  (void)queue;
  if (!payload_length) return EWOULDBLOCK;
  if (payload_length > max_length || payload_buffers > max_buffers) return EFAILED;
  __builtin_memcpy(message, payload, payload_length);
  __builtin_memcpy(b, buffers_in, payload_buffers * sizeof *b);
  *length = payload_length, *buffers = payload_buffers, *flags = payload_length = 0;
  return 0;
}
int dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t buffers, struct dspqueue_buffer *b, uint32_t length,
                   const uint8_t *message, uint32_t timeout_us) {
  (void)queue, (void)flags, (void)timeout_us;
  if (length > sizeof reply || buffers > 64) return EFAILED;
  __builtin_memcpy(reply, message, reply_length = length);
  __builtin_memcpy(buffers_out, b, (reply_buffers = buffers) * sizeof *b);
  return 0;
}

static int read_all(void *p, uint32_t n) {
  for (uint8_t *b = p; n;) {
    long r = rt_read(0, b, n);
    if (r <= 0) return 0;
    b += r, n -= (uint32_t)r;
  }
  return 1;
}

int main(void) {
  struct frame f;
  while (read_all(&f, sizeof f)) {
    const uint32_t buffers = f.kind == MESSAGE ? f.argument : 0;
    if (f.length > sizeof payload || buffers > 64 || !read_all(buffers_in, buffers * sizeof *buffers_in) || !read_all(payload, f.length)) return 1;
    int32_t result = 0;
    reply_length = reply_buffers = 0;
    switch (f.kind) {
    case INVOKE: {
      remote_arg arg = {.buf = {payload, f.length}};
      result = lutra_skel_handle_invoke(1, f.argument, &arg);
      break;
    }
    case MESSAGE:
      payload_length = f.length, payload_buffers = f.argument;
      if (on_message) on_message((dspqueue_t)&on_message, 0, 0);
      break;
    case MAP: result = map(3 + mapped, f.argument); break;
    default: return 1;
    }
    if (f.kind == MESSAGE) result = (int32_t)reply_buffers;
    struct frame out = {f.kind, (uint32_t)result, reply_length};
    rt_write(1, &out, sizeof out);
    rt_write(1, buffers_out, reply_buffers * sizeof *buffers_out);
    rt_write(1, reply, reply_length);
  }
  return 0;
}
