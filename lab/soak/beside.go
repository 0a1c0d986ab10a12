package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Beside says how long a plain stream takes while another client sends heavy requests, one after the other.
type Beside struct {
	Kind        string // of the heavy requests; empty: nobody sends any
	Requests    int    // of this kind that ended meanwhile
	Median, P99 time.Duration
}

// mostSlower is the factor by which the slowest streams of a hundred may be slower beside heavy requests.
const mostSlower = 3

// measure times streams alone, then beside each heavy kind.
func (r *Report) measure(ctx context.Context, opt *Options, c *clients) error {
	for _, name := range append([]string{""}, heavy...) {
		b, err := beside(ctx, opt, c, name)
		if err != nil {
			return err
		}
		r.Beside = append(r.Beside, b)
		if alone := r.Beside[0].P99; b.P99 > mostSlower*alone {
			r.Faults = append(r.Faults, fmt.Sprintf("beside %s the slowest stream of a hundred takes %v, alone %v", name, b.P99.Round(time.Millisecond), alone.Round(time.Millisecond)))
		}
	}
	return nil
}

// beside times streams while a client sends requests of a kind.
func beside(ctx context.Context, opt *Options, c *clients, name string) (Beside, error) {
	b := Beside{Kind: name}
	other, end := context.WithCancel(ctx)
	var load sync.WaitGroup
	var loadErr error
	if name != "" {
		k := named(name)
		load.Go(func() {
			for i := uint64(0); other.Err() == nil; i++ {
				e, err := c.do(other, k, rand.New(rand.NewPCG(opt.Seed, i)))
				if e == faulty && other.Err() == nil {
					loadErr = fmt.Errorf("%s: %w", name, err)
					return
				}
				b.Requests++
			}
		})
	}
	took := make([]time.Duration, opt.Streams)
	plain := named("stream")
	var err error
	for i := range took {
		begin := time.Now()
		e, failed := c.do(ctx, plain, rand.New(rand.NewPCG(opt.Seed, uint64(i)))) // the same streams beside each
		took[i] = time.Since(begin)
		if e != answered {
			err = fmt.Errorf("a stream beside %s was %v: %w", name, e, failed)
			break
		}
	}
	end()
	load.Wait()
	if err == nil {
		err = loadErr
	}
	slices.Sort(took)
	b.Median, b.P99 = took[len(took)/2], took[len(took)*99/100]
	return b, err
}

// named returns the kind of that name.
func named(name string) *kind {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		panic("soak: there is no kind " + name)
	}
	return &kinds[at]
}
