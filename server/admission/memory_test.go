package admission

import (
	"errors"
	"testing"
)

func TestTheLastOfTheMemoryIsForSmallRequests(t *testing.T) {
	m := NewMemory(4 * smallRequest)
	var never *MemoryError
	large, another, small, huge := m.Lease(), m.Lease(), m.Lease(), m.Lease()
	if err := large.Grow(2 * smallRequest); err != nil {
		t.Fatal(err)
	}
	if err := another.Grow(smallRequest + 1); err != ErrBusy {
		t.Errorf("a large request without room: %v, want ErrBusy", err)
	}
	if err := huge.Grow(3*smallRequest + 1); !errors.As(err, &never) {
		t.Errorf("a request that would leave the small ones nothing: %v, want a MemoryError", err)
	}
	if err := small.Grow(smallRequest); err != nil {
		t.Errorf("a small request: %v, want room for it", err)
	}
	if err := another.Grow(smallRequest); err != nil {
		t.Errorf("a second small request: %v, want room for it", err)
	}
	if err := another.Grow(1); err != ErrBusy {
		t.Errorf("beyond all of the memory: %v, want ErrBusy", err)
	}
	for _, l := range []*Lease{large, another, small, huge} {
		l.End()
	}
	if m.Bytes() != 0 {
		t.Errorf("%d bytes are held by nobody", m.Bytes())
	}
}
