// The library that FastRPC loads on the DSP. Its methods, called by the host:
//
//	0  open, 1 close          as FastRPC has them for every handle
//	2  start(queue, files, size) the memory's mappings are the files', packets come through the queue
//	3  stop()
//
// The emulator runs this file against a stand-in; no chip has run it yet.
#include "lines.h"
#include "queue.h"
#include "workers.h"

enum { EFAILED = 1, EBADPARM = 14, EUNSUPPORTED = 20, BATCH = 256 };

struct start {
  uint64_t queue;
  int32_t files[MAPPINGS];
  uint64_t size;
};

static struct {
  dspqueue_t queue;
  int32_t files[MAPPINGS];
  struct memory memory;
} session;

static struct {
  struct request header;
  struct packet packets[BATCH];
} message;
static struct dspqueue_buffer touched[MAX_BUFFERS];

// answer_message runs the packets of one message, which touch n buffers.
static struct answer answer_message(uint32_t length, int n) {
  const struct request *q = &message.header;
  struct answer r = {.magic = MAGIC, .number = q->number};
  if (n < 0 || length < sizeof *q || q->magic != MAGIC || q->count > BATCH || length != sizeof *q + q->count * sizeof *message.packets) {
    r.status = STATUS_SIZE;
    return r;
  }
  platform_begin(&session.memory, q->begins != 0);
  lines_write_back(touched, n, 1);
  for (; r.done < q->count; r.done++)
    if ((r.status = run_packet(&message.packets[r.done], &message.packets[q->count], &session.memory))) break;
  finish_packets(&session.memory);
  queue_rest();
  lines_write_back(touched, n, 0);
  platform_end(&session.memory, r.status || q->count < BATCH);
  return r;
}

static void on_message(dspqueue_t queue, int error, void *context) {
  (void)error, (void)context;
  uint32_t flags, buffers, length;
  while (dspqueue_read_noblock(queue, &flags, MAX_BUFFERS, &buffers, touched, sizeof message, &length, (uint8_t *)&message) == 0) {
    const int n = lines_of(touched, buffers, session.files, &session.memory);
    const struct answer r = answer_message(length, n);
    dspqueue_write(queue, 0, n > 0 ? (uint32_t)n : 0, touched, sizeof r, (const uint8_t *)&r, 1000000);
  }
}

static void on_error(dspqueue_t queue, int error, void *context) { (void)queue, (void)error, (void)context; }

static int stop(void) {
  if (session.queue) {
    dspqueue_close(session.queue);
    queue_close();
    workers_close();
    platform_close(session.files, &session.memory);
    session.queue = 0;
  }
  return 0;
}

static int start(const struct start *s) {
  if (session.queue || s->size % ALIGN || s->size < TCM_BYTES || s->size > (uint64_t)MAPPINGS << MAPPING_BITS) return EBADPARM;
  session.memory = (struct memory){.size = s->size};
  for (int i = 0; i < MAPPINGS; i++) session.files[i] = s->files[i];
  int error = platform_open(session.files, &session.memory);
  if (error) return error;
  session.memory.workers = workers_open(MAX_WORKERS), session.memory.enough = SHARD_PACKETS, session.memory.share = workers_share, session.memory.ahead = 1;
  session.memory.tiles = queue_open();
  error = session.memory.tiles ? dspqueue_import(s->queue, on_message, on_error, 0, &session.queue) : EFAILED;
  if (error) {
    session.queue = 0;
    queue_close();
    workers_close();
    platform_close(session.files, &session.memory);
  }
  return error;
}

// lutra_skel_handle_invoke is what FastRPC calls; scalars has the number of the method,
// and of the buffers that come with it.
__attribute__((visibility("default"))) int lutra_skel_handle_invoke(uint64_t handle, uint32_t scalars, remote_arg *args) {
  (void)handle;
  switch (scalars >> 24 & 31) {
  case 0: return 0;
  case 1: return stop();
  case 2: {
    if ((scalars >> 16 & 255) != 1 || args[0].buf.nLen != sizeof(struct start)) return EBADPARM;
    return start(args[0].buf.pv);
  }
  case 3: return stop();
  }
  return EUNSUPPORTED;
}
