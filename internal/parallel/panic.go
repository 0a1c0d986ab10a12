package parallel

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Panic is a panic as an error: of a goroutine to whoever waits for it, or of what hostile input
// has reached to whoever has read it.
type Panic struct {
	Value any
	Stack []byte // where it happened
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Caught returns a Panic of what recover has returned in the function that calls it, nil of nil.
func Caught(recovered any) *Panic {
	switch p := recovered.(type) {
	case nil:
		return nil
	case *Panic: // of another goroutine
		return p
	}
	return &Panic{recovered, debug.Stack()}
}

// Try calls f, and returns its panic as a *Panic.
func Try(f func() error) (err error) {
	defer func() {
		if p := Caught(recover()); p != nil {
			err = p
		}
	}()
	return f()
}

// Guard returns f with its panic as a *Panic: what an errgroup.Group runs, whose goroutines would end
// the process.
func Guard(f func() error) func() error { return func() error { return Try(f) } }

// Raise panics with the *Panic that err is, if it is one.
func Raise(err error) {
	if p := (*Panic)(nil); errors.As(err, &p) {
		panic(p)
	}
}

// Group is a sync.WaitGroup whose Wait has the panic of a goroutine in place of the process's end.
type Group struct {
	all   sync.WaitGroup
	first atomic.Pointer[Panic]
}

// Go calls f in a goroutine.
func (g *Group) Go(f func()) {
	g.all.Go(func() {
		defer func() {
			if p := Caught(recover()); p != nil {
				g.first.CompareAndSwap(nil, p)
			}
		}()
		f()
	})
}

// Wait returns when all goroutines have, and panics with the first *Panic of one.
func (g *Group) Wait() {
	g.all.Wait()
	if p := g.first.Load(); p != nil {
		panic(p)
	}
}
