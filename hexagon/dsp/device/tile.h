#pragma once
#include "../dispatch/dispatch.h"

void tile_mul_plain(const struct tile_mul *t);
void tile_mul_hmx(const struct tile_mul *t); // of the SDK's compiler alone; untested
