package pool

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAWorkerWokenElsewhereMayGoEverywhereAgain(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Skip("no affinities here:", err)
	}
	here := currentCPU()
	if !before.IsSet(here) {
		t.Fatalf("runs on processor %d, which is not allowed", here)
	}
	var b parker
	b.prepare()
	b.unpark(here, -1)
	var during, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &during); err != nil {
		t.Fatal(err)
	}
	if before.Count() > 1 && during.IsSet(here) {
		t.Errorf("processor %d, which is busy, is not forbidden", here)
	}
	if b.cancel() {
		t.Error("a worker that was called does not sleep")
	}
	b.park()
	if err := unix.SchedGetaffinity(0, &after); err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("may run on %d processors afterwards, %d before", after.Count(), before.Count())
	}
	if b.state.Load() != awake {
		t.Errorf("state %d after sleep", b.state.Load())
	}
}

func TestTheOnlyProcessorIsNeverForbidden(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Skip("no affinities here:", err)
	}
	cpu := currentCPU()
	own.Set(cpu)
	if err := unix.SchedSetaffinity(0, &own); err != nil {
		t.Skip("affinities cannot be set here:", err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	var b parker
	b.prepare()
	b.unpark(cpu)
	if b.thread.away {
		t.Error("a thread was told to leave the only processor that it has")
	}
	b.park()
}
