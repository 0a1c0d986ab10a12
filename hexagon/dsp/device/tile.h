#pragma once
#include "../dispatch/dispatch.h"

void tile_mul(const struct tile_mul *t);
