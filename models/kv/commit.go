package kv

import (
	"context"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// commitPiece is about how many bytes of each array are committed at once: the
// pages that large arrays lie on.
const commitPiece = 2 << 20

// raise notes that block b is handed out.
func (f *highWater) raise(b int32) {
	if b < f.blocks.Load() {
		return
	}
	f.blocks.Store(b + 1)
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// Commit has the system find memory for the blocks [from, to). Otherwise it does
// so when they are first written, in the midst of a step: 0.2 ms for a page of
// 2 MiB, or 7 ms on a virtual machine whose host must find memory too. Contents
// stay as they are; any goroutine may call it. It reports whether the system did so.
func (st *store) Commit(from, to int) bool {
	piece := int(max(1, 2*commitPiece/max(1, layerBytes(st.shape, 0, st.opt))))
	for ; from < to; from += piece {
		for i := range st.layers {
			if !st.layers[i].commit(from, min(piece, to-from)) {
				return false
			}
		}
	}
	return true
}

// commit has the system find memory for n blocks from number first on.
func (l *Layer) commit(first, n int) bool {
	at, count := l.FirstVector(int32(first), 0), n*l.heads*l.stride
	return l.keys.commit(at, count, l.dim) && l.values.commit(at, count, l.dim)
}

// CommitAhead commits all residuals. Then it commits blocks in the order in which they are first handed out,
// tokens of them in advance, until ctx ends, all are committed or the
// system refuses. It may run beside the cache's owner, once at a time.
func (c *Cache) CommitAhead(ctx context.Context, tokens int) {
	if !cpu.Commit(c.residuals.data) || !cpu.Commit(c.residuals.scale) {
		return
	}
	ahead := max(1, tokens/c.opt.BlockLen)
	piece := max(1, ahead/8)
	for done := 0; done < c.opt.Blocks; {
		if done >= int(c.highWater.blocks.Load())+ahead {
			select {
			case <-c.highWater.moved:
			case <-ctx.Done():
				return
			}
			continue
		}
		to := min(c.opt.Blocks, done+piece)
		if ctx.Err() != nil || !c.Commit(done, to) {
			return
		}
		done = to
	}
}

// Bytes returns what the cache takes once all of its blocks, residuals and states have been in use.
func (c *Cache) Bytes() int64 {
	return int64(c.opt.Blocks)*BytesPerBlock(c.shape, c.opt) + int64(c.Residuals())*BytesPerResidual(c.shape, c.opt) + int64(c.opt.States)*BytesPerState(c.shape)
}

// Untouched returns the part of Bytes in blocks that were never handed out: the system has found no
// memory for most of them. Any goroutine may call it.
func (c *Cache) Untouched() int64 {
	return int64(c.opt.Blocks-int(c.highWater.blocks.Load())) * BytesPerBlock(c.shape, c.opt)
}
