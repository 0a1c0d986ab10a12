#include "lines.h"

enum { MOST = 128 << 10 }; // bytes, line by line: of more all lines there are take less time, as ggml-hexagon has it

// in returns the address of a buffer that lies in a mapping of that file, or 0.
static uint64_t in(const struct dspqueue_buffer *b, const int32_t files[MAPPINGS], const struct memory *m) {
  for (int i = 0; mapping(m->size, i); i++)
    if ((uint32_t)files[i] == b->fd && (uint64_t)b->offset + b->size <= mapping(m->size, i)) return (uintptr_t)m->base[i] + ((uint32_t)i << MAPPING_BITS) + b->offset;
  return 0;
}

int lines_of(struct dspqueue_buffer *b, uint32_t n, const int32_t files[MAPPINGS], const struct memory *m) {
  int kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!(b[i].flags & INVALIDATE_SENDER)) continue;
    struct dspqueue_buffer line = b[i];
    if (!(line.at = in(&line, files, m))) return -1;
    line.flags = INVALIDATE_RECIPIENT;
    b[kept++] = line;
  }
  return kept;
}

void lines_write_back(const struct dspqueue_buffer *b, int n, int drop) {
  uint64_t all = 0;
  for (int i = 0; i < n; i++) all += b[i].size;
  if (all > MOST) platform_lines(drop);
  else
    for (int i = 0; i < n; i++)
      for (uint32_t at = (uint32_t)b[i].at & ~(uint32_t)(CACHE_LINE - 1), end = (uint32_t)b[i].at + b[i].size; at < end; at += CACHE_LINE) platform_line((void *)(uintptr_t)at, drop);
  platform_settled();
}
