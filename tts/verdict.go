package tts

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher"
)

// verdicts are what a reward model makes of all that the judges of one request
// read: a tree, in which candidates that begin with the same steps share the
// nodes of these, so that each different beginning is read once.
//
//	prompt ─▶ step ─▶ step ─▶ step
//	            └───▶ step
//
// A node keeps its sequence as long as judges stand at it; a step behind it is
// read on a fork. A judge that comes late, and finds the sequence gone, forks
// what is left nearest to the root.
type verdicts struct {
	v       *Reward
	mu      sync.Mutex // guards what nodes say of each other, their users, and what follows
	charged int        // tokens
}

// verdict is one node.
type verdict struct {
	up    *verdict
	ids   []int32             // read behind up; of the root, what all begins with
	next  map[string]*verdict // by their ids
	users int                 // judges that stand here or are about to
	paid  bool                // charged

	ready chan struct{} // closed when what follows is known
	score float32
	err   error
	seq   *batcher.Sequence // nil: there is no more need of it
	turn  sync.Mutex        // to fork seq
}

// begin makes the root, where one judge stands: what all that is read begins
// with, and the sequence that holds it. Both may be nil.
func (t *verdicts) begin(ids []int32, seq *batcher.Sequence) *verdict {
	root := &verdict{ids: ids, seq: seq, users: 1, ready: make(chan struct{})}
	close(root.ready)
	return root
}

// join lets n more judges stand at d.
func (t *verdicts) join(d *verdict, n int) {
	t.mu.Lock()
	d.users += n
	t.mu.Unlock()
}

// leave lets one judge less stand at d.
func (t *verdicts) leave(d *verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.users--; d.users == 0 && d.seq != nil {
		d.seq.Close()
		d.seq = nil
	}
}

// read gives the verdict on ids behind d, where the caller then stands too. It
// may be called by many judges at once: the first one has it computed, and the
// others wait for that.
func (t *verdicts) read(ctx context.Context, d *verdict, ids []int32) (*verdict, error) {
	key := string(packed(ids))
	for {
		t.mu.Lock()
		n := d.next[key]
		first := n == nil
		if first {
			n = &verdict{up: d, ids: slices.Clone(ids), ready: make(chan struct{})}
			if d.next == nil {
				d.next = map[string]*verdict{}
			}
			d.next[key] = n
		}
		n.users++
		t.mu.Unlock()
		if first {
			n.seq, n.score, n.err = t.compute(ctx, d, ids)
			if n.err != nil {
				t.mu.Lock()
				delete(d.next, key) // whoever comes later may be luckier
				t.mu.Unlock()
			}
			close(n.ready)
		}
		select {
		case <-n.ready:
		case <-ctx.Done():
			t.leave(n)
			return nil, context.Cause(ctx)
		}
		if n.err == nil {
			return n, nil
		}
		t.leave(n)
		if first {
			return nil, n.err
		}
	}
}

// compute reads ids behind d.
func (t *verdicts) compute(ctx context.Context, d *verdict, ids []int32) (*batcher.Sequence, float32, error) {
	seq, missing, err := t.fork(ctx, d)
	if err != nil {
		return nil, 0, err
	}
	missing = append(missing, ids...)
	if seq == nil {
		seq, err = t.v.model.Engine.OpenBackground(ctx, missing)
	} else {
		seq.Append(missing...)
	}
	if err != nil {
		return nil, 0, err
	}
	score, err := t.v.read(ctx, seq)
	if err != nil {
		seq.Close()
		return nil, 0, err
	}
	return seq, score, nil
}

// fork copies the sequence of d, or else of the nearest node above that has
// one, and tells which tokens it misses then. Where there is none at all the
// result is nil.
func (t *verdicts) fork(ctx context.Context, d *verdict) (seq *batcher.Sequence, missing []int32, err error) {
	t.mu.Lock()
	for d != nil && d.seq == nil {
		missing = append(slices.Clone(d.ids), missing...)
		d = d.up
	}
	if d != nil {
		d.users++ // so that it stays
	}
	t.mu.Unlock()
	if d == nil {
		return nil, missing, nil
	}
	defer t.leave(d)
	d.turn.Lock()
	defer d.turn.Unlock()
	seqs, err := d.seq.Fork(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	return seqs[0], missing, nil
}

// packed are the bytes of ids, for use as a key.
func packed(ids []int32) []byte {
	key := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	return key
}

// reader is one judge's place in the verdicts.
type reader struct {
	*verdicts
	root, at *verdict
	scored   []*verdict // since the last charge
	closed   bool
}

// step reads ids behind d and goes there.
func (r *reader) step(ctx context.Context, d *verdict, ids []int32) (float32, error) {
	n, err := r.read(ctx, d, ids)
	if err != nil {
		return 0, err
	}
	r.leave(r.at)
	r.at, r.scored = n, append(r.scored, n)
	return n.score, nil
}

// Charge implements Judge.
func (r *reader) Charge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.scored {
		if !d.paid {
			d.paid = true
			r.charged += len(d.ids)
		}
	}
	r.scored = nil
}

// copies are n more readers at r's place.
func (r *reader) copies(n int) []reader {
	r.join(r.at, n)
	k := *r
	k.scored = nil // is charged once
	return slices.Repeat([]reader{k}, n)
}

// Spent implements Judge.
func (r *reader) Spent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.charged
}

// Close implements Judge.
func (r *reader) Close() {
	if !r.closed {
		r.closed = true
		r.leave(r.at)
	}
}
