package reward

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher"
)

// scoreTree holds a reward model's scores of all that the judges of one request
// read. Candidates that begin with the same steps share the nodes of these, so
// that each different beginning is read once. Candidates agree so often that this
// saves a verifier most of its tokens, the more the more candidates there are. The
// engine alone finds equal tokens only within one step or in whole blocks.
//
//	prompt ─▶ step ─▶ step ─▶ step
//	            └───▶ step
//
// A node keeps its sequence as long as judges stand at it; a step after it is
// read on a fork. A judge that comes late, and finds the sequence gone, forks
// what is left nearest to the root.
type scoreTree struct {
	v       *Scorer
	mu      sync.Mutex // guards parents, children, judges and paid of all nodes, and what follows
	charged int        // tokens
}

// scoreNode is the score of one step after those above it.
type scoreNode struct {
	parent   *scoreNode
	ids      []int32               // read after parent; of the root, what all begins with
	children map[string]*scoreNode // by their ids
	judges   int                   // judges that stand here or are about to
	paid     bool                  // charged

	ready   chan struct{} // closed when what follows is known
	score   float32
	err     error
	seq     *batcher.Sequence // nil: there is no more need of it
	forking sync.Mutex        // to fork seq
}

// begin makes the root, with one judge at it: ids, with which all that is read
// begins, and the sequence that holds them. Both may be nil.
func (t *scoreTree) begin(ids []int32, seq *batcher.Sequence) *scoreNode {
	root := &scoreNode{ids: ids, seq: seq, judges: 1, ready: make(chan struct{})}
	close(root.ready)
	return root
}

// join adds n judges to a node.
func (t *scoreTree) join(node *scoreNode, n int) {
	t.mu.Lock()
	node.judges += n
	t.mu.Unlock()
}

// leave takes one judge off a node.
func (t *scoreTree) leave(node *scoreNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if node.judges--; node.judges == 0 && node.seq != nil {
		node.seq.Close()
		node.seq = nil
	}
}

// read returns the node of ids after parent, where the caller then stands too. It
// may be called by many judges at once: the first one has it computed, and the
// others wait for that.
func (t *scoreTree) read(ctx context.Context, parent *scoreNode, ids []int32) (*scoreNode, error) {
	key := string(packed(ids))
	for {
		t.mu.Lock()
		n := parent.children[key]
		first := n == nil
		if first {
			n = &scoreNode{parent: parent, ids: slices.Clone(ids), ready: make(chan struct{})}
			if parent.children == nil {
				parent.children = map[string]*scoreNode{}
			}
			parent.children[key] = n
		}
		n.judges++
		t.mu.Unlock()
		if first {
			n.seq, n.score, n.err = t.compute(ctx, parent, ids)
			if n.err != nil {
				t.mu.Lock()
				delete(parent.children, key) // a later judge may try again
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

// compute reads ids after parent.
func (t *scoreTree) compute(ctx context.Context, parent *scoreNode, ids []int32) (*batcher.Sequence, float32, error) {
	seq, missing, err := t.fork(ctx, parent)
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

// fork copies the sequence of a node, or else of the nearest node above that has
// one, and returns the tokens that it misses then. Where there is none at all the
// result is nil.
func (t *scoreTree) fork(ctx context.Context, node *scoreNode) (seq *batcher.Sequence, missing []int32, err error) {
	t.mu.Lock()
	for node != nil && node.seq == nil {
		missing = append(slices.Clone(node.ids), missing...)
		node = node.parent
	}
	if node != nil {
		node.judges++ // so that it stays
	}
	t.mu.Unlock()
	if node == nil {
		return nil, missing, nil
	}
	defer t.leave(node)
	node.forking.Lock()
	defer node.forking.Unlock()
	seqs, err := node.seq.Fork(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	return seqs[0], missing, nil
}

// packed returns the bytes of ids, for use as a key.
func packed(ids []int32) []byte {
	key := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	return key
}

// reader is one judge's place in the tree.
type reader struct {
	*scoreTree
	root, at *scoreNode
	scored   []*scoreNode // since the last charge
	closed   bool
}

// step reads ids after parent and goes there.
func (r *reader) step(ctx context.Context, parent *scoreNode, ids []int32) (float32, error) {
	n, err := r.read(ctx, parent, ids)
	if err != nil {
		return 0, err
	}
	r.leave(r.at)
	r.at, r.scored = n, append(r.scored, n)
	return n.score, nil
}

// Charge implements tts.Judge.
func (r *reader) Charge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, node := range r.scored {
		if !node.paid {
			node.paid = true
			r.charged += len(node.ids)
		}
	}
	r.scored = nil
}

// copies returns n more readers at r's place.
func (r *reader) copies(n int) []reader {
	r.join(r.at, n)
	k := *r
	k.scored = nil // is charged once
	return slices.Repeat([]reader{k}, n)
}

// Spent implements tts.Judge.
func (r *reader) Spent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.charged
}

// Close implements tts.Judge.
func (r *reader) Close() {
	if !r.closed {
		r.closed = true
		r.leave(r.at)
	}
}
