// Shards of operations, one after the other: what a chip's workers do beside one another. An
// operation's packets are those of its longest shard, and a barrier is counted.
//
// With a seed each shard runs twice, by itself, in an order that the seed chooses, and however
// small an operation is. First it finds what the operation found, so that what others have
// written is not there; then nonsense in its place. The program ends if two shards write one
// vector, or if what one writes depends on what another does. Packets are then those of both.
#pragma once
#include "../dispatch/dispatch.h"

void shards_open(struct memory *m, uint32_t seed);
