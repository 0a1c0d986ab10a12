package kv

import (
	"errors"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// ErrNoBlocks says that the cache has no free or evictable block, or recurrent
// state, left.
var ErrNoBlocks = errors.New("kv: out of blocks")

// New makes a cache for models of that shape. It reserves address space outside
// the heap at once; the system finds the memory when blocks are committed or
// first written. The error is cpu.ErrMemory if there is no room. The caller
// closes the cache.
func New(shape Shape, opt Options) (*Cache, error) {
	if err := check(shape, opt); err != nil {
		return nil, err
	}
	per := BytesPerBlock(shape, opt)
	blocks := make([]block, opt.Blocks)
	for i := range blocks {
		blocks[i].checkpoint, blocks[i].residual = none, none
	}
	c := &Cache{
		store:  store{opt: opt, shape: shape, layers: make([]Layer, shape.Layers+shape.Others.Layers)},
		states: newStates(shape.State, opt.States, opt.BlockLen, blocks),
	}
	c.pool.init(blocks, opt.BlockLen, &c.states)
	if err := c.reserve(per*int64(opt.Blocks) + BytesPerResidual(shape, opt)*int64(opt.residuals()) + BytesPerState(shape)*int64(c.States())); err != nil {
		return nil, errors.Join(fmt.Errorf("kv: cache of %d blocks of %d bytes: %w", opt.Blocks, per, err), c.Close())
	}
	return c, nil
}

// check holds a cache against the bounds of shapes, options and memory.
func check(shape Shape, opt Options) error {
	if err := shape.check(); err != nil {
		return err
	}
	if opt.BlockLen < 1 || opt.BlockLen > 1<<16 || opt.Blocks < 1 || opt.Blocks > math.MaxInt32 {
		return fmt.Errorf("kv: cache of %d blocks of %d tokens", opt.Blocks, opt.BlockLen)
	}
	if !opt.Type.known() {
		return fmt.Errorf("kv: unknown type %d", opt.Type)
	}
	if err := opt.Type.Check(shape); err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	if shape.State < 0 || shape.State > maxState || shape.State > 0 && (opt.States < 1 || opt.States > math.MaxInt32) {
		return fmt.Errorf("kv: cache of %d recurrent states of %d numbers", opt.States, shape.State)
	}
	per := BytesPerBlock(shape, opt)
	if per < 1 || int64(opt.Blocks) > min(maxBytes, math.MaxInt)/per || int64(opt.Blocks)*int64(max(shape.Heads, shape.Others.Heads))*int64(wholeGroups(opt.BlockLen)) > math.MaxInt32 {
		return fmt.Errorf("kv: cache of %d blocks of %d bytes is beyond %d bytes", opt.Blocks, per, int64(maxBytes))
	}
	if per += BytesPerResidual(shape, opt); opt.Residuals < 0 || int64(opt.Blocks) > min(maxBytes, math.MaxInt)/per { // as if each block had a residual
		return fmt.Errorf("kv: cache of %d blocks of %d bytes with %d residuals is beyond %d bytes", opt.Blocks, per, opt.Residuals, int64(maxBytes))
	}
	if perState := BytesPerState(shape); perState > 0 && int64(opt.States) > min(maxBytes, math.MaxInt)/perState-per*int64(opt.Blocks)/perState {
		return fmt.Errorf("kv: cache of %d recurrent states of %d bytes is beyond %d bytes", opt.States, perState, int64(maxBytes))
	}
	return nil
}

// check holds the numbers of layers, heads and states against each other.
func (s Shape) check() error {
	if attends := s.Layers > 0; attends && (s.Heads < 1 || s.HeadDim < 1) || !attends && (s.Layers < 0 || s.State < 1) {
		return fmt.Errorf("kv: cache for %d layers of %d heads of %d", s.Layers, s.Heads, s.HeadDim)
	}
	if o := s.Others; o != (Others{}) && (o.Layers < 1 || o.Heads < 1 || o.HeadDim < 1) {
		return fmt.Errorf("kv: cache for %d further layers of %d heads of %d", o.Layers, o.Heads, o.HeadDim)
	}
	return nil
}

// smallCache is the size below which a cache is not worth memory of its own.
const smallCache = 1 << 20

// reserve makes the arrays, of about that many bytes together.
func (c *Cache) reserve(bytes int64) error {
	if bytes >= smallCache {
		c.memory = new(cpu.Arena)
		if err := c.memory.Reserve(int(bytes)); err != nil {
			return err
		}
	}
	err := room(c.memory, &c.index.tokens, c.opt.Blocks*c.opt.BlockLen)
	for i := 0; i < len(c.layers) && err == nil; i++ {
		heads, dim := c.shape.of(i)
		c.layers[i], err = newLayer(c.memory, c.opt, heads, dim)
	}
	if c.opt.residuals() > 0 && err == nil {
		err = c.residuals.reserve(c.memory, c.opt, c.layers)
	}
	if c.states.size > 0 && err == nil {
		err = room(c.memory, &c.states.data, c.States()*c.states.size)
	}
	return err
}

// Close gives the memory back. The cache and its sequences must not be used
// afterwards.
func (c *Cache) Close() error {
	if c.memory == nil {
		return nil
	}
	return c.memory.Free()
}

// Stats counts how full the cache is and what the prefix index has found.
func (c *Cache) Stats() Stats {
	s := c.stats
	s.Blocks, s.Free, s.Cached, s.Evictions = c.opt.Blocks, c.Free(), c.index.cached, c.evictions
	s.Residuals, s.FreeResiduals = c.Residuals(), c.FreeResiduals()
	s.States, s.FreeStates, s.Checkpoints = c.States(), c.FreeStates(), c.Checkpoints()
	return s
}
