package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// recorder runs the same step again and again on a pool of some threads.
type recorder struct {
	pool  *pool.Pool
	model *models.Bundle
	cache *kv.Cache
	batch models.Batch
}

func newRecorder(path string, threads, rows, context int) (*recorder, error) {
	r := &recorder{pool: pool.New(threads)}
	var err error
	if r.model, err = models.Load(path, models.LoadOptions{Pool: r.pool}); err != nil {
		return nil, err
	}
	cfg := r.model.Model.Config()
	blocks := (rows + 1) * pool.Parts(context+1, 32)
	if r.cache, err = kv.New(cfg.KV(), kv.Options{BlockLen: 32, Blocks: blocks}); err != nil {
		return nil, err
	}
	seqs := make([]*kv.Sequence, rows)
	for i := range seqs {
		s := r.cache.Open(nil)
		if err := s.Grow(context); err != nil {
			return nil, err
		}
		tokens := make([]int32, context)
		for j := range tokens {
			tokens[j] = int32((i*31 + j*7919) % cfg.Vocab)
		}
		r.batch.Reset()
		r.batch.Add(s, 0, 0, tokens...)
		if err := r.model.Model.Forward(&r.batch, r.cache); err != nil {
			return nil, err
		}
		if err := s.Grow(1); err != nil {
			return nil, err
		}
		seqs[i] = s
	}
	r.batch.Reset()
	for i, s := range seqs {
		r.batch.Add(s, context, 1, int32(i+1))
	}
	return r, nil
}

func (r *recorder) close() { r.pool.Close() }

// record runs the step reps times and keeps each task's least time, and the step's.
func (r *recorder) record(reps int) (s step, whole time.Duration, err error) {
	m := r.pool.Meter()
	m.Enable()
	var now []task
	r.pool.Observe(func(t pool.Task, parts int, took time.Duration) {
		now = append(now, task{parts, helps[fmt.Sprintf("%T", t)], took})
	})
	defer r.pool.Observe(nil)
	for i := range reps {
		now = now[:0]
		before, begun := readBytes(m), time.Now()
		if err := r.model.Model.Forward(&r.batch, r.cache); err != nil {
			return s, 0, err
		}
		took := time.Since(begun)
		alone := took
		for _, t := range now {
			alone -= t.work
		}
		if i == 0 {
			s, whole = step{slices.Clone(now), alone, readBytes(m) - before}, took
		}
		whole, s.alone = min(whole, took), min(s.alone, alone)
		for j := range now {
			s.tasks[j].work = min(s.tasks[j].work, now[j].work)
		}
	}
	return s, whole, nil
}

// helps are the tasks whose workers help each other.
var helps = map[string]help{"*stream.Task": units, "*ternary.sharing": pairs}

func readBytes(m *meter.Meter) (sum float64) {
	for _, c := range m.Costs() {
		sum += float64(c.Bytes)
	}
	return sum
}

// recording is the same step on pools of several numbers of threads.
type recording struct {
	steps    map[int]step          // by threads, as a pool of so many cuts it; the work of its tasks is that of one thread
	measured map[int]time.Duration // by threads, of those that this machine has cores for
}

// record records the step of some rows, each after context tokens, in which a model decodes.
func record(path string, rows, context int, threads []int, reps int) (*recording, error) {
	rec := &recording{map[int]step{}, map[int]time.Duration{}}
	var one step
	for _, n := range threads {
		r, err := newRecorder(path, n, rows, context)
		if err != nil {
			return nil, err
		}
		tries := reps
		if n > cpu.Cores() {
			tries = 1 // for its parts alone
		}
		s, whole, err := r.record(tries)
		r.close()
		if err != nil {
			return nil, err
		}
		if n == 1 {
			one = s
		}
		if len(one.tasks) != len(s.tasks) {
			return nil, fmt.Errorf("a step has %d tasks on %d threads, %d on one", len(s.tasks), n, len(one.tasks))
		}
		for i := range s.tasks {
			s.tasks[i].work = one.tasks[i].work
		}
		s.alone, s.bytes = one.alone, one.bytes
		rec.steps[n] = s
		if n <= cpu.Cores() {
			rec.measured[n] = whole
		}
	}
	return rec, nil
}
