package soak

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a run is made of.
type Options struct {
	Command  []string // lutra, and what goes before serve
	Env      []string // of it, besides this process's
	Reader   string   // GGUF file of a model that makes vectors
	Requests int
	For      time.Duration // how long requests are sent; 0: until there were Requests
	Clients  int           // at once
	Seed     uint64        // of the mixture; which requests meet is not repeated
	Sample   time.Duration
	Reload   time.Duration // between changes of the swapped model; 0: it stays
	Streams  int           // measured beside each kind of heavy requests; 0: none
	Patience time.Duration // that no request may take
	Progress io.Writer
}

// Report is what became of the requests, and of the server.
type Report struct {
	Kinds         []Count
	Beside        []Beside
	Took          time.Duration // of all requests, without the warm-up
	Before, After Sample        // idle
	Samples       []Sample
	Faults        []string // the first of each kind, and what of the server is not as before
}

// Count is how many requests of a kind ended how.
type Count struct {
	Kind string
	Ends [ends]int
}

// keptSamples bounds the samples: beyond it every other one is dropped, and half as many are taken.
const keptSamples = 2000

// growth is the most that resident memory may gain between the second fifth of a run and the last. Caches fill during the first,
// which takes thousands of requests, however slowly they come.
const (
	growth        = 1.10
	leastRequests = 2000
)

// Run starts the server, carries the requests out and ends it.
func Run(ctx context.Context, opt Options) (*Report, error) {
	dir, err := os.MkdirTemp("", "lutra-soak-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := start(ctx, &opt, dir)
	if err != nil {
		return nil, err
	}
	r, err := drive(ctx, &opt, s)
	if stopped := s.stop(); err == nil {
		err = stopped
	}
	return r, err
}

func drive(ctx context.Context, opt *Options, s *server) (*Report, error) {
	r := &Report{Kinds: make([]Count, len(kinds))}
	for i := range kinds {
		r.Kinds[i].Kind = kinds[i].name
	}
	c := newClients(s.base, opt.Clients, opt.Patience)
	for i := range kinds { // what is made at the first use is made before
		if e, err := c.do(ctx, &kinds[i], rand.New(rand.NewPCG(opt.Seed, uint64(i)))); e == faulty {
			return nil, fmt.Errorf("the first %s: %w", kinds[i].name, err)
		}
	}
	c.close()
	var err error
	if r.Before, err = s.settle(ctx, nil); err != nil {
		return nil, err
	}
	if opt.Streams > 0 {
		if err := r.measure(ctx, opt, c); err != nil {
			return nil, err
		}
	}
	if err := r.carryOut(ctx, opt, s, c); err != nil {
		return nil, err
	}
	c.close()
	if r.After, err = s.settle(ctx, &r.Before); err != nil {
		r.Faults = append(r.Faults, err.Error())
	}
	if grown := r.grown(); grown > growth {
		r.Faults = append(r.Faults, fmt.Sprintf("resident memory has grown to %.2f times", grown))
	}
	return r, ctx.Err()
}

// carryOut runs all requests by as many clients, and samples the server meanwhile.
func (r *Report) carryOut(ctx context.Context, opt *Options, s *server, c *clients) error {
	var next, done atomic.Int64
	var mu sync.Mutex
	begin := time.Now()
	var all sync.WaitGroup
	for range opt.Clients {
		all.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if opt.For == 0 && i >= int64(opt.Requests) || opt.For > 0 && time.Since(begin) > opt.For {
					return
				}
				rnd := rand.New(rand.NewPCG(opt.Seed, uint64(i)))
				k := draw(rnd)
				e, err := c.do(ctx, k, rnd)
				done.Add(1)
				mu.Lock()
				r.count(k, e, i, err)
				mu.Unlock()
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	every, reloads := opt.Sample, 0
	for {
		select {
		case <-ended:
			r.Took = time.Since(begin)
			return ctx.Err()
		case <-time.After(every):
		}
		if due := time.Since(begin); opt.Reload > 0 && due > time.Duration(reloads+1)*opt.Reload {
			reloads = int(due / opt.Reload)
			if err := s.reload(reloads); err != nil {
				<-ended
				return err
			}
		}
		now, err := s.sample(ctx)
		if err != nil {
			<-ended
			return fmt.Errorf("the server does not answer: %w", err)
		}
		now.At, now.Requests = time.Since(begin), int(done.Load())
		if r.Samples = append(r.Samples, now); len(r.Samples) > keptSamples {
			every *= 2
			r.Samples = halve(r.Samples)
		}
		if opt.Progress != nil {
			fmt.Fprintf(opt.Progress, "%d requests, %.0f/s, %.0f MB, %.0f goroutines\n", now.Requests, float64(now.Requests)/now.At.Seconds(), now.Resident/1e6, now.Goroutines)
		}
	}
}

func halve(samples []Sample) []Sample {
	kept := samples[:0]
	for i := 0; i < len(samples); i += 2 {
		kept = append(kept, samples[i])
	}
	return kept
}

// count notes the end of request i. Of faults it keeps the first of each kind.
func (r *Report) count(k *kind, e end, i int64, err error) {
	at := slices.IndexFunc(r.Kinds, func(c Count) bool { return c.Kind == k.name })
	r.Kinds[at].Ends[e]++
	if e == faulty && r.Kinds[at].Ends[faulty] == 1 {
		r.Faults = append(r.Faults, fmt.Sprintf("request %d, %s: %v", i, k.name, err))
	}
}

// Sum returns how many requests ended so.
func (r *Report) Sum() (sum [ends]int) {
	for _, c := range r.Kinds {
		for e, n := range c.Ends {
			sum[e] += n
		}
	}
	return sum
}

// grown returns the ratio of resident memory, median of the last fifth to that of the second; 1 of a run
// too short to tell.
func (r *Report) grown() float64 {
	fifth := len(r.Samples) / 5
	if fifth < 5 || r.Samples[len(r.Samples)-1].Requests < leastRequests {
		return 1
	}
	median := func(s []Sample) float64 {
		var of []float64
		for i := range s {
			of = append(of, s[i].Resident)
		}
		slices.Sort(of)
		return of[len(of)/2]
	}
	return median(r.Samples[len(r.Samples)-fifth:]) / median(r.Samples[fifth:2*fifth])
}
