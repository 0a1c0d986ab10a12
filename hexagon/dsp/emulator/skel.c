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
static uint32_t payload_length, reply_length; // of a message; 0: taken, none written
static uint8_t tcm[TCM_BYTES] __attribute__((aligned(1 << 16)));
// What the host and the DSP see of each mapping: the DSP's lines are old until they are invalidated, and the host does not see
// what is in them until they are flushed. Behind its first bytes both see the same.
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

int platform_open(const int32_t files[MAPPINGS], struct memory *m) {
  (void)files;
  for (int i = 0; mapping(m->size, i); i++) {
    if (i == mapped) return EFAILED;
    m->base[i] = windows[i].seen - ((uint32_t)i << MAPPING_BITS);
  }
  m->tcm = tcm;
  machine_open(tcm);
  return 0;
}
void platform_close(const int32_t files[MAPPINGS], const struct memory *m) { (void)files, (void)m; }
static void copy(uint8_t *d, const uint8_t *s, uint32_t from, uint32_t end) {
  for (; from < end; from += sizeof(V)) *(V *)(d + from) = *(const V *)(s + from);
}
void platform_begin(const struct memory *m, int run) {
  (void)m;
  for (int i = 0; i < mapped; i++) copy(windows[i].seen, windows[i].shared, i ? 0 : TCM_BYTES, windows[i].size);
  if (run) machine_poison();
}
void platform_end(const struct memory *m, int run) {
  (void)m, (void)run;
  machine_idle();
  for (int i = 0; i < mapped; i++) copy(windows[i].shared, windows[i].seen, i ? 0 : TCM_BYTES, windows[i].size);
}

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
  (void)queue, (void)max_buffers, (void)b;
  if (!payload_length) return EWOULDBLOCK;
  if (payload_length > max_length) return EFAILED;
  __builtin_memcpy(message, payload, payload_length);
  *length = payload_length, *flags = *buffers = payload_length = 0;
  return 0;
}
int dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t buffers, struct dspqueue_buffer *b, uint32_t length,
                   const uint8_t *message, uint32_t timeout_us) {
  (void)queue, (void)flags, (void)buffers, (void)b, (void)timeout_us;
  if (length > sizeof reply) return EFAILED;
  __builtin_memcpy(reply, message, reply_length = length);
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
    if (f.length > sizeof payload || !read_all(payload, f.length)) return 1;
    int32_t result = 0;
    reply_length = 0;
    switch (f.kind) {
    case INVOKE: {
      remote_arg arg = {.buf = {payload, f.length}};
      result = lutra_skel_handle_invoke(1, f.argument, &arg);
      break;
    }
    case MESSAGE:
      payload_length = f.length;
      if (on_message) on_message((dspqueue_t)&on_message, 0, 0);
      break;
    case MAP: result = map(3 + mapped, f.argument); break;
    default: return 1;
    }
    struct frame out = {f.kind, (uint32_t)result, reply_length};
    rt_write(1, &out, sizeof out);
    rt_write(1, reply, reply_length);
  }
  return 0;
}
