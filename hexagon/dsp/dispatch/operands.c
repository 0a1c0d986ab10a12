#include "operands.h"

#ifdef LUTRA_STRICT
uint32_t blind;
#endif

void operand(struct operands *o, int i, uint32_t from, uint64_t n, uint32_t rule) {
  const uint64_t end = from + n;
  const uint32_t align = rule & (uint32_t)(WORDS - 1) & ~15u;
  while (o->n < i) o->span[o->n++] = (struct span){0, 0, 0};
  const struct span s = {from, end < ~0u ? (uint32_t)end : ~0u, rule};
  o->span[o->n++] = s;
  if ((from & (align - 1)) || end > o->size || (from < TCM_BYTES ? end > TCM_BYTES || (rule & IN_DDR) : rule & IN_TCM) || ((rule & APART) && overlap(&s, o->span)))
    o->status = STATUS_RANGE;
}
