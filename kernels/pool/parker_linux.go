package pool

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// thread is the operating system's thread of a worker. It sleeps in the kernel and
// not in Go's scheduler, so that the thread that sleeps is the one that wakes up.
//
// Linux takes a virtual processor that sleeps for one that the host has withdrawn.
// It therefore puts a thread that wakes up on its waker's processor, and both share
// that until the next tick: 4 ms, longer than most steps. So while a thread is woken
// it may not use the processors that are known to be busy. As soon as it runs it may
// use all that it could before.
type thread struct {
	id   int
	away bool        // some processors are forbidden
	home unix.CPUSet // all those that it may use
}

// settle keeps the worker on its thread until leave.
func (t *thread) settle() {
	runtime.LockOSThread() // so that no new thread inherits what avoid forbids this one
	t.id = unix.Gettid()
}

func (t *thread) leave() {
	if t.away {
		t.away = false
		_ = unix.SchedSetaffinity(t.id, &t.home)
	}
	runtime.UnlockOSThread()
}

// avoid forbids a sleeping thread some processors, where the system lets it.
func (t *thread) avoid(busy []int) {
	if unix.SchedGetaffinity(t.id, &t.home) != nil {
		return
	}
	free := t.home
	for _, cpu := range busy {
		if cpu >= 0 {
			free.Clear(cpu)
		}
	}
	if free.Count() > 0 && free != t.home {
		t.away = unix.SchedSetaffinity(t.id, &free) == nil
	}
}

// Operations of futex(2) within a process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// wait returns when state is no longer s, or spuriously.
func (t *thread) wait(state *atomic.Uint32, s uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(state)), futexWait, uintptr(s), 0, 0, 0)
}

func (t *thread) wake(state *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(state)), futexWake, math.MaxInt32, 0, 0, 0)
}

// currentCPU returns the processor that runs the caller.
func currentCPU() int {
	var cpu uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	if errno != 0 {
		return -1
	}
	return int(cpu)
}
