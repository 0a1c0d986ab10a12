//go:build arm64 && !purego

#include "textflag.h"

// func pause(n int)
// Passes the time of n instruction barriers, n positive. YIELD does nothing on
// cores of one thread; ISB empties the pipeline, tens of cycles without heat.
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0
loop:
	ISB  $15
	SUBS $1, R0, R0
	BNE  loop
	RET
