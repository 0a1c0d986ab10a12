package tts

import (
	"context"
	"errors"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Filled says what became of the candidates that a plain answer got for nothing.
type Filled struct {
	Offered  int // begun besides the plain answer
	Finished int // complete in time
	Dropped  int // gave way to other requests
	Tokens   int // generated for all of them
}

// patience is for how long the other candidates may go on when the plain answer is there, as a
// share of the time that this has taken.
const patience = 0.25

// fill writes the plain answer, and others beside it in what lanes the engine's steps have to
// spare. Those that are complete soon enough take part in the choice; the others are
// forgotten. With no others, the answer is the plain one, bit for bit.
func (r *searchRun) fill() error {
	began := time.Now()
	r.elsewhere.source, r.over = nil, func(int) (StopReason, bool) { return "", false }
	beams, err := r.forkSpare(r.root, r.plan.N-1)
	if err != nil {
		return err
	}
	plain, others := beams[0], beams[1:]
	r.filled = &Filled{Offered: len(others)}
	r.begin(beams, 0, true)
	for _, b := range beams {
		b.grant = b.limit
	}
	ctx, cancel := context.WithCancelCause(r.work)
	defer cancel(nil)
	r.startAll(ctx, beams)
	done := make(chan struct{})
	wait := parallel.Start(beams, func(i int, b *beam) error {
		if i == 0 {
			defer close(done)
		}
		err := r.generate(ctx, b)
		if err == nil && b.cand.Finish != "" {
			err = r.score(ctx, b)
		}
		if i > 0 && errors.Is(err, batcher.ErrDropped) {
			b.dropped, err = true, nil
		}
		return err
	})
	defer func() {
		for _, b := range beams {
			b.close()
		}
	}()
	<-done
	late := time.AfterFunc(time.Duration(patience*float64(time.Since(began))), func() { cancel(errDecided) })
	err = wait()
	late.Stop()
	if err != nil {
		return err
	}
	r.steps = 1
	r.tree.record(plain, 1)
	r.retire(plain)
	for _, b := range others {
		r.filled.Tokens += len(b.cand.IDs)
		switch {
		case b.dropped:
			r.filled.Dropped++
		case b.cand.Finish != "":
			r.filled.Finished++
			r.tree.record(b, 1)
			r.retire(b)
		}
	}
	return nil
}

// forkSpare returns b and up to n spare copies of it: fewer where there is no room for more.
func (r *searchRun) forkSpare(b *beam, n int) ([]*beam, error) {
	seqs, err := halveWhileBusy(n, func(n int) ([]*batcher.Sequence, error) { return b.seq.ForkSpare(r.ctx, n) })
	if err != nil {
		return nil, err
	}
	judges, err := halveWhileBusy(len(seqs), func(n int) ([]Judge, error) { return b.judge.Fork(r.ctx, n) })
	beams := []*beam{b}
	for i, seq := range seqs {
		if i < len(judges) {
			beams = append(beams, b.copyTo(seq, judges[i]))
		} else {
			seq.Close()
		}
	}
	return beams, err
}

// keepPlain puts the plain answer first where the others have no answers to vote on: of free
// texts none is more frequent.
func (r *searchRun) keepPlain(rk *ranking) {
	if r.filled == nil || r.plan.Method == scaling.BestOfN || !rk.silent() {
		return
	}
	for i, c := range rk.order {
		if c.Index == 0 {
			copy(rk.order[1:i+1], rk.order[:i])
			rk.order[0] = c
		}
	}
	rk.agreement = float64(max(1, rk.order[0].Votes)) / float64(max(1, len(rk.side.members)+len(rk.rivals.members)))
}
