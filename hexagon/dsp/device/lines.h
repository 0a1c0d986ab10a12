// The DSP's caches beside the host's view of memory. The host says with each message which parts of the memory its packets
// read and write through them (device.Touched): these lines are forgotten before, since the host may have written them, and
// written back after.
#pragma once
#include "platform.h"

// Of dspqueue_buffer's flags (dspqueue.h): what queues do with the lines of a buffer where caches are not coherent.
enum { FLUSH_SENDER = 16, INVALIDATE_SENDER = 32, INVALIDATE_RECIPIENT = 128, MAX_BUFFERS = 64 };

// lines_of keeps of n buffers those whose lines the host has given up, and returns how many they are: the others are read past the
// caches. -1: one lies in none of a memory's mappings, which are of files.
int lines_of(struct dspqueue_buffer *b, uint32_t n, const int32_t files[MAPPINGS], const struct memory *m);
// lines_write_back has memory hold what n buffers' lines do, and forgets them if drop is not 0.
void lines_write_back(const struct dspqueue_buffer *b, int n, int drop);
