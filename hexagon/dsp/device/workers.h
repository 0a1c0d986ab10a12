// The workers of a session.
#pragma once
#include "../dispatch/dispatch.h"

// workers_open starts as many threads as vectors allow, most at most, and returns how many
// workers there are then, the thread that calls workers_share among them.
int workers_open(int most);
// workers_share has each shard of an operation run, by a worker of its own, and waits for all.
void workers_share(const struct operation *o);
void workers_close(void);
