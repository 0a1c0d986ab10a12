//go:build !linux

package pool

import "sync/atomic"

// thread leaves it to Go's scheduler which thread runs a worker.
type thread struct{ calls chan struct{} }

func (t *thread) settle() {
	if t.calls == nil {
		t.calls = make(chan struct{}, 1)
	}
}

func (t *thread) leave()                          {}
func (t *thread) avoid([]int)                     {}
func (t *thread) wait(_ *atomic.Uint32, _ uint32) { <-t.calls }

func (t *thread) wake(*atomic.Uint32) {
	select {
	case t.calls <- struct{}{}:
	default: // an earlier call that the worker noticed by itself does as well
	}
}

// currentCPU is unknown.
func currentCPU() int { return -1 }
