// What is under way while packets run: transfers of DMA and products in the tile unit's queue. A packet
// that begins one does not wait for it; each packet waits for what its operands meet. So a list of
// packets computes what it does one after the other, and says by its operands what may overlap.
#pragma once
#include "operands.h"

enum flow { FLOW_DMA, FLOW_TILES };

// flow_settle waits for what a packet of those operands, perhaps a product, must find done.
void flow_settle(const struct operands *o, int of_tiles, const struct memory *m);
// flow_add says that a packet of those operands is under way until what began last has ended: DMA's transfer, or the
// product in the queue, of that number.
void flow_add(const struct operands *o, enum flow flow, uint32_t number, const struct memory *m);
// flow_ahead returns the OP_GEMV behind p, which is one, up to end, if its first tiles may come while p ends: neither p nor
// what stands between them writes what they are, or touches where they go. 0: there is none, or it may not.
const struct packet *flow_ahead(const struct packet *p, const struct packet *end, const struct memory *m);
// flow_drain waits for all.
void flow_drain(const struct memory *m);
