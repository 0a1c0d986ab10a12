// A stand-in for a Snapdragon's libcdsprpc.so, for tests: as much of the public FastRPC
// interface as the host uses. rpcmem is a file of memory, and the DSP is the program
// that LUTRA_STANDIN_DSP names (at most 7 words: qemu-hexagon and dsp/emulator/skel.c).
// LUTRA_STANDIN_FAULT makes one call fail, or the DSP fall silent or talk nonsense.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLUSH_SENDER = 16, INVALIDATE_RECIPIENT = 128, MAX_BUFFERS = 64, LINE = 64 };
enum { INVOKE = 1, MESSAGE, MAP, EFAILED = 1, EEXPIRED = 12, EBADPARM = 14, CDSP = 3 };

struct frame {
  uint32_t kind, argument, length;
};

// Memory as the host's caches show it, which the file of fd has, and as the DSP does, in another file: lines pass where a buffer of
// the queue says so.
static struct memory {
  uint8_t *at, *memory;
  size_t size;
  int fd, memory_fd, mapped;
} memories[4];
struct buffer {
  uint32_t fd, size, offset, flags;
  uint64_t at;
};
static int to = -1, from = -1;
static pid_t dsp;

static int fault(const char *name) {
  const char *f = getenv("LUTRA_STANDIN_FAULT");
  return f && !strcmp(f, name);
}

static struct memory *find(void *p) {
  for (struct memory *m = memories; m < memories + 4; m++)
    if (m->at == p) return m;
  return 0;
}
// pass copies buffers' lines, those with a flag, to memory or from it. It returns whether they lie in what is mapped.
static int pass(const struct buffer *b, uint32_t n, uint32_t flag, int to_memory) {
  for (; n--; b++) {
    struct memory *m = memories;
    while (m < memories + 4 && !(m->at && m->mapped && (uint32_t)m->fd == b->fd)) m++;
    if (m == memories + 4 || !b->size || (uint64_t)b->offset + b->size > m->size) return 0;
    const size_t from = b->offset & ~(size_t)(LINE - 1), end = ((size_t)b->offset + b->size + LINE - 1) & ~(size_t)(LINE - 1);
    if (b->flags & flag) memcpy((to_memory ? m->memory : m->at) + from, (to_memory ? m->at : m->memory) + from, end - from);
  }
  return 1;
}
void *rpcmem_alloc(int heap, uint32_t flags, int size) {
  struct memory *m = find(0);
  if (heap != 25 || flags != 1 || size <= 0 || !m || fault("memory") || (m > memories && fault("second memory"))) return 0;
  m->fd = memfd_create("rpcmem", MFD_CLOEXEC), m->memory_fd = memfd_create("memory", MFD_CLOEXEC), m->size = (size_t)size, m->mapped = 0;
  if (m->fd < 0 || m->memory_fd < 0 || ftruncate(m->fd, size) || ftruncate(m->memory_fd, size)) return 0;
  void *p = mmap(0, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0), *q = mmap(0, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->memory_fd, 0);
  m->memory = q;
  return m->at = p == MAP_FAILED || q == MAP_FAILED ? 0 : p;
}
int rpcmem_to_fd(void *p) {
  struct memory *m = p ? find(p) : 0;
  return m ? m->fd : -1;
}
void rpcmem_free(void *p) {
  struct memory *m = p ? find(p) : 0;
  if (!m) return;
  munmap(m->at, m->size), close(m->fd), munmap(m->memory, m->size), close(m->memory_fd);
  m->at = 0, m->mapped = 0;
}

static int read_all(void *p, size_t n) {
  for (uint8_t *b = p; n;) {
    ssize_t r = read(from, b, n);
    if (r <= 0) return 0;
    b += r, n -= (size_t)r;
  }
  return 1;
}
static int ask(uint32_t kind, uint32_t argument, const void *p, uint32_t n) {
  struct frame f = {kind, argument, n};
  return write(to, &f, sizeof f) == sizeof f && write(to, p, n) == (ssize_t)n;
}
static int call(uint32_t kind, uint32_t argument, const void *p, uint32_t n) {
  struct frame f;
  if (!ask(kind, argument, p, n) || !read_all(&f, sizeof f) || f.kind != kind || f.length) return EFAILED;
  return (int)f.argument;
}

int remote_session_control(uint32_t request, void *data, uint32_t n) {
  const int *d = data; // domain, enable
  return request == 2 && n == 8 && d[0] == CDSP && d[1] == 1 && !fault("unsigned") ? 0 : EBADPARM;
}
int remote_handle64_open(const char *uri, uint64_t *handle) {
  const char *want = "file:///liblutra_skel.so?lutra_skel_handle_invoke&_modver=1.0&_dom=cdsp";
  *handle = 7;
  return strcmp(uri, want) || fault("open") ? EBADPARM : 0;
}

// Of the questions that a DSP answers: its architecture.
int remote_handle_control(uint32_t request, void *data, uint32_t n) {
  uint32_t *d = data; // domain, question, answer
  if (request != 2 || n != 12 || d[0] != CDSP || d[1] != 6) return EBADPARM;
  d[2] = fault("old") ? 0x73 : 0x75;
  return 0;
}
int remote_handle64_control(uint64_t handle, uint32_t request, void *data, uint32_t n) {
  const uint32_t *l = data; // flags, microseconds
  return handle == 7 && request == 1 && n == 8 && l[0] == 1 && !fault("latency") ? 0 : EBADPARM;
}

// start_dsp runs the DSP's program with what is mapped as files from 3 on, and has it map them.
static int start_dsp(void) {
  char line[512] = "", *argv[8] = {0}, *rest = line;
  if (getenv("LUTRA_STANDIN_DSP")) strncpy(line, getenv("LUTRA_STANDIN_DSP"), sizeof line - 1);
  for (int i = 0; i < 7 && rest; i++) argv[i] = strsep(&rest, " ");
  int a[2], b[2];
  if (pipe2(a, O_CLOEXEC) || pipe2(b, O_CLOEXEC)) return EFAILED;
  if (!(dsp = fork())) {
    int files[4];
    for (int i = 0; i < 4; i++) files[i] = memories[i].mapped ? fcntl(memories[i].memory_fd, F_DUPFD, 64) : -1; // without its flag to close
    dup2(a[0], 0), dup2(b[1], 1);
    for (int i = 0; i < 4; i++)
      if (files[i] >= 0) dup2(files[i], 3 + i);
    execvp(argv[0], argv);
    _exit(127);
  }
  close(a[0]), close(b[1]);
  to = a[1], from = b[0];
  for (struct memory *m = memories; m < memories + 4 && m->mapped; m++)
    if (call(MAP, (uint32_t)m->size, 0, 0)) return EFAILED;
  return 0;
}
int remote_handle64_close(uint64_t handle) {
  if (handle != 7) return EBADPARM;
  if (!dsp) return 0;
  close(to), close(from);
  waitpid(dsp, 0, 0);
  dsp = 0;
  return 0;
}
int remote_handle64_invoke(uint64_t handle, uint32_t scalars, void *args) {
  struct { void *p; size_t n; } none = {0, 0}, *in = args ? args : &none;
  if (handle != 7 || fault("invoke")) return EBADPARM;
  if (!dsp && start_dsp()) return EFAILED;
  return call(INVOKE, scalars, in->p, (uint32_t)in->n);
}
int fastrpc_mmap(int domain, int fd, void *addr, int offset, size_t n, int flags) {
  struct memory *m = addr ? find(addr) : 0;
  if (domain != CDSP || !m || fd != m->fd || offset || n != m->size || flags != 2 || dsp || fault("mmap")) return EBADPARM;
  m->mapped = 1;
  return 0;
}
int fastrpc_munmap(int domain, int fd, void *addr, size_t n) {
  struct memory *m = addr ? find(addr) : 0;
  return domain == CDSP && m && fd == m->fd && n == m->size ? 0 : EBADPARM;
}
int dspqueue_create(int domain, uint32_t flags, uint32_t requests, uint32_t responses, void *packet, void *error, void *context, void **queue) {
  (void)flags, (void)packet, (void)error, (void)context;
  *queue = &dsp;
  return domain == CDSP && requests >= 8192 && responses >= 4096 && !fault("queue") ? 0 : EBADPARM;
}
int dspqueue_export(void *queue, uint64_t *id) {
  *id = 42;
  return queue == &dsp && !fault("export") ? 0 : EBADPARM;
}
int dspqueue_close(void *queue) { return queue == &dsp ? 0 : EBADPARM; }
int dspqueue_write(void *queue, uint32_t flags, uint32_t buffers, struct buffer *b, uint32_t n, const uint8_t *message, uint32_t us) {
  (void)flags, (void)us;
  if (queue != &dsp || buffers > MAX_BUFFERS || fault("write") || !pass(b, buffers, FLUSH_SENDER, 1)) return EBADPARM;
  if (fault("death")) {
    kill(dsp, 9);
    waitpid(dsp, 0, WNOWAIT | WEXITED);
  }
  if (fault("silence")) return 0;
  const struct frame f = {MESSAGE, buffers, n};
  const ssize_t bytes = (ssize_t)(buffers * sizeof *b);
  return write(to, &f, sizeof f) == sizeof f && write(to, b, (size_t)bytes) == bytes && write(to, message, n) == (ssize_t)n ? 0 : EFAILED;
}
int dspqueue_read(void *queue, uint32_t *flags, uint32_t max_buffers, uint32_t *buffers, struct buffer *b, uint32_t max, uint32_t *n, uint8_t *message, uint32_t us) {
  struct pollfd p = {from, POLLIN, 0};
  if (queue != &dsp || fault("read")) return EBADPARM;
  if (poll(&p, 1, (int)(us / 1000)) == 0) return EEXPIRED;
  struct frame f;
  if (!read_all(&f, sizeof f) || f.kind != MESSAGE || f.length > max || f.argument > max_buffers || !read_all(b, f.argument * sizeof *b) || !read_all(message, f.length)) return EFAILED;
  if (!pass(b, f.argument, INVALIDATE_RECIPIENT, 0)) return EFAILED;
  *flags = 0, *buffers = f.argument, *n = f.length;
  if (fault("short")) *n = 7;
  if (fault("nonsense")) memset(message, 0x5a, *n);
  if (fault("miscount")) message[8]++;
  return 0;
}
