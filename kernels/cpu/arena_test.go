package cpu

import (
	"errors"
	"math"
	"runtime"
	"testing"
	"unsafe"
)

func TestArraysOfAnArenaAreZeroedApartAndOnCacheLines(t *testing.T) {
	var a Arena
	defer a.Free()
	var all [][]byte
	total := 0
	for _, n := range []int{1, 63, 64, 65, 3 << 20, 100, 70 << 20, 5} {
		b, err := Array[uint8](&a, n)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != n || cap(b) != n || uintptr(unsafe.Pointer(&b[0]))%CacheLine != 0 {
			t.Errorf("an array of %d has %d of %d elements at %p", n, len(b), cap(b), &b[0])
		}
		if b[0] != 0 || b[n/2] != 0 || b[n-1] != 0 {
			t.Errorf("a fresh array of %d is not zero", n)
		}
		b[0], b[n-1] = byte(len(all)+1), byte(len(all)+1)
		all, total = append(all, b), total+RoundUp(n, CacheLine)
	}
	for i, b := range all {
		if b[0] != byte(i+1) || b[len(b)-1] != byte(i+1) {
			t.Errorf("array %d of %d shares memory with another one", i, len(b))
		}
	}
	if a.total != total {
		t.Errorf("the arrays take %d bytes, want %d", a.total, total)
	}
}

func TestArraysLieTogetherInReservedMemory(t *testing.T) {
	var a Arena
	defer a.Free()
	if err := a.Reserve(8 << 20); err != nil {
		t.Fatal(err)
	}
	first, err1 := Array[float32](&a, 1<<20)
	second, err2 := Array[uint16](&a, 2<<20)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if uintptr(unsafe.Pointer(&second[0]))-uintptr(unsafe.Pointer(&first[0])) != 4<<20 {
		t.Errorf("arrays of reserved memory begin at %p and %p", &first[0], &second[0])
	}
}

func TestArraysThatAreTakenBackMakeRoomForOthers(t *testing.T) {
	a := Within(Aligned[byte](2 * CacheLine))
	for range 3 {
		m := a.Mark()
		b, err := a.Bytes(2 * CacheLine)
		if err != nil || b[0] != 0 || b[CacheLine] != 0 {
			t.Fatalf("there are %d bytes, or not zeroed: %v", len(b), err)
		}
		b[0], b[CacheLine] = 1, 1
		if _, err := a.Bytes(1); !errors.Is(err, ErrMemory) {
			t.Errorf("a full arena says %v", err)
		}
		a.Reset(m)
	}
	var grown Arena
	defer grown.Free()
	if err := grown.Reserve(1); err != nil {
		t.Fatal(err)
	}
	m := grown.Mark()
	b, err := grown.Bytes(100)
	if err != nil {
		t.Fatal(err)
	}
	b[0] = 1
	grown.Reset(m)
	again, err := grown.Bytes(100)
	if err != nil || &again[0] != &b[0] || again[0] != 0 || grown.total != 2*CacheLine {
		t.Errorf("what was taken back is at %p, not %p, or not zeroed: %v", &again[0], &b[0], err)
	}
	(*Arena)(nil).Reset((*Arena)(nil).Mark()) // the heap
}

// What the heap holds decides how much garbage the collector lets stand.
func TestAnArenaIsOutsideTheHeap(t *testing.T) {
	const bytes = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var a Arena
	b, err := Array[uint8](&a, bytes)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapSys) - int64(before.HeapSys); got > bytes/4 {
		t.Errorf("the heap grew by %d bytes for an arena of %d", got, bytes)
	}
	for range 2 {
		if err := a.Free(); err != nil || a.total != 0 {
			t.Errorf("Free() = %v, %d bytes are left", err, a.total)
		}
	}
}

func TestMoreMemoryThanThereIsIsAnError(t *testing.T) {
	var a Arena
	for _, n := range []int{math.MaxInt / 64, math.MaxInt} {
		if _, err := Array[float32](&a, n); !errors.Is(err, ErrMemory) {
			t.Errorf("Array(%d) = %v, want ErrMemory", n, err)
		}
	}
	if err := a.Free(); err != nil {
		t.Error(err)
	}
}
