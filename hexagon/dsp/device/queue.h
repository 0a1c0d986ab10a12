// The tile unit's queue, and the thread that takes from it.
#pragma once
#include "../dispatch/dispatch.h"

// queue_open starts the thread and returns its unit, or 0. One thread pushes and waits.
const struct tile_unit *queue_open(void);
// queue_rest has the thread give the unit back to others until there are products again.
void queue_rest(void);
void queue_close(void);
