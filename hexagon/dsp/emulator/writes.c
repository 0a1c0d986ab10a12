#include "writes.h"
#include "../dispatch/operands.h"

int writes(const struct operation *o, struct write w[MOST_WRITTEN]) {
  struct operands of;
  int n = 0;
  operands_of(o->packet, o->memory->size, &of);
  for (const struct span *s = of.span; s < of.span + of.n; s++) {
    if (!(s->rule & WRITES)) continue;
    w[n] = (struct write){at(o->memory, s->from), s->end - s->from, s->rule & WORDS ? 4 : 128, (s->rule & KEEPS) != 0};
    for (const struct span *r = of.span; r < of.span + of.n; r++) w[n].kept |= !(r->rule & WRITES) && overlap(r, s);
    n++;
  }
  return n;
}
