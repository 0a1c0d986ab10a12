package memory

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTheHeapIsHeldToTheModelsAndWhatRequestsMayHold(t *testing.T) {
	const requests = 1 << 30
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	undo := BoundHeap(requests)
	if limit := debug.SetMemoryLimit(-1); limit < requests || limit > 3*requests {
		t.Errorf("the limit is %d, want room for requests of %d bytes and what else there is", limit, requests)
	}
	undo()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		t.Errorf("the limit is %d afterwards, want none", limit)
	}
	debug.SetMemoryLimit(12345 << 20) // as GOMEMLIMIT does
	defer BoundHeap(requests)()
	if limit := debug.SetMemoryLimit(-1); limit != 12345<<20 {
		t.Errorf("the limit is %d, want the one that was set", limit)
	}
}
