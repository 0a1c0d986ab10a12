// Package toy is a tiny deterministic model for tests of the layers above models. It keeps a rolling hash of a
// sequence's tokens in the KV cache and derives its logits from reading it back. A block that is shared wrongly,
// written twice, truncated too little or not recomputed therefore changes the tokens, and mostly fails the step.
package toy

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// Model implements models.Model. Its fields are set before the first Forward.
type Model struct {
	Vocab   int            // tokens; 0: 64
	Outputs int            // width of a row of logits; 0: Vocab
	Context int            // longest sequence; 0: 4096
	Pooling models.Pooling // of a model that embeds texts: rows are hidden states
	States  int            // recurrent states in its cache: it keeps the hash there too, and checks it; 0: it has none

	// Logits fills a row in place of the default. tokens are the sequence's up to the row's position, as read back
	// from the cache. Both are only valid during the call.
	Logits func(tokens []int32, row []float32)
	// Before runs at the start of every Forward: to let fake time pass, to fail, to panic.
	Before func(b *models.Batch) error

	steps, computed atomic.Int64
	tokens          []int32 // scratch
}

// Steps returns the number of Forward calls so far, Computed the number of tokens in them.
func (m *Model) Steps() int    { return int(m.steps.Load()) }
func (m *Model) Computed() int { return int(m.computed.Load()) }

// Config describes one layer with one head, and with States a recurrent one.
func (m *Model) Config() models.Config {
	c := models.Config{
		Arch: "toy", Name: "toy", Layers: 1, Hidden: 2, FFN: 2, AttentionShape: models.AttentionShape{Heads: 1, KVHeads: 1, HeadDim: 2},
		Vocab: m.Vocab, Outputs: m.Outputs, Pooling: m.Pooling, Context: m.Context,
	}
	if m.States > 0 {
		c.Layers, c.RecurrentLayers, c.State, c.GuessBytes = 2, 1, stateLen, 1
	}
	if c.Vocab == 0 {
		c.Vocab = 64
	}
	if c.Outputs == 0 {
		c.Outputs = c.Vocab
	}
	if c.Context == 0 {
		c.Context = 4096
	}
	return c
}

// NewCache makes a KV cache that m can use.
func (m *Model) NewCache(blocks, blockLen int) *kv.Cache {
	cache, err := kv.New(m.Config().KV(), kv.Options{Type: kv.F32, BlockLen: blockLen, Blocks: blocks, States: m.States})
	if err != nil {
		panic(err)
	}
	return cache
}

// Forward computes the batch, checking every position it reads.
func (m *Model) Forward(b *models.Batch, cache *kv.Cache) error {
	m.steps.Add(1)
	m.computed.Add(int64(len(b.Tokens)))
	if m.Before != nil {
		if err := m.Before(b); err != nil {
			return err
		}
	}
	cfg := m.Config()
	rows := b.Outputs()
	b.Logits = slices.Grow(b.Logits[:0], rows*cfg.Outputs)[:rows*cfg.Outputs]
	row := 0
	for i := range b.Spans {
		sp := &b.Spans[i]
		first := int(b.Positions[sp.Start])
		if end := first + sp.End - sp.Start; sp.KV.Len() != end {
			return fmt.Errorf("toy: span ends at position %d of a sequence of %d", end, sp.KV.Len())
		}
		hash, err := m.read(sp.KV, sp.Variant.KVRoot(), first)
		if err != nil {
			return err
		}
		state, marks, err := m.advance(sp, first, hash)
		if err != nil {
			return err
		}
		for t := sp.Start; t < sp.End; t++ {
			pos, id := int(b.Positions[t]), b.Tokens[t]
			if pos != first+t-sp.Start || id < 0 || int(id) >= cfg.Vocab {
				return fmt.Errorf("toy: token %d at position %d of span %d", id, pos, i)
			}
			hash = roll(hash, id)
			m.tokens = append(m.tokens, id)
			key, value := sp.KV.Plain(0, 0, pos)
			key[0], key[1] = float32(hash&0xffffff), float32(hash>>40)
			value[0], value[1] = float32(id), float32(pos)
			if len(marks) > 0 && pos+1 == marks[0].At {
				remember(marks[0].State, hash)
				marks = marks[1:]
			}
			if t >= sp.End-sp.Out {
				m.fill(b.Logits[row*cfg.Outputs:(row+1)*cfg.Outputs], m.tokens, hash)
				row++
			}
		}
		remember(state, hash)
	}
	return nil
}

// TakeBack undoes guesses. What the state was before them must be where Forward has left it.
func (m *Model) TakeBack(b *models.Batch, keep []int) {
	for i, n := range keep {
		sp := &b.Spans[i]
		if m.States == 0 || n == sp.End-sp.Start {
			continue
		}
		first := int(b.Positions[sp.Start])
		state, saved, from := sp.KV.Undo(first + n)
		var want [stateLen]float32
		for _, at := range []int{from, first + n} {
			hash, err := m.read(sp.KV, sp.Variant.KVRoot(), at)
			if err != nil {
				panic(err)
			}
			if remember(want[:], hash); at == from && !slices.Equal(saved, want[:]) {
				panic(fmt.Sprintf("toy: what was kept of the state of %d tokens is of another past", from))
			}
		}
		copy(state, want[:])
	}
}

// stateLen is the numbers of a state: a hash in pieces that a float32 holds.
const stateLen = 3

// remember writes hash into a state, if there is one.
func remember(state []float32, hash uint64) {
	for i := range state {
		state[i] = float32(hash >> (22 * i) & (1<<22 - 1))
	}
}

// advance moves the recurrent state of a span on. The state must belong to the sequence and to the tokens before,
// which have that hash.
func (m *Model) advance(sp *models.Span, first int, hash uint64) (state []float32, marks []kv.Mark, err error) {
	if m.States == 0 {
		return nil, nil, nil
	}
	if at, own := sp.KV.StateAt(); at != first || !own {
		return nil, nil, fmt.Errorf("toy: the state of %d tokens, own %t, where that of %d was wanted", at, own, first)
	}
	state, marks = sp.KV.Advance(first+sp.End-sp.Start, math.MaxInt)
	var want [stateLen]float32
	if first > 0 {
		remember(want[:], hash)
	}
	if !slices.Equal(state, want[:]) {
		return nil, nil, fmt.Errorf("toy: the state before position %d is of another past", first)
	}
	return state, marks, nil
}

// read walks the first n positions and returns their hash, which begins with the root of what
// computes them; m.tokens are their tokens.
func (m *Model) read(s *kv.Sequence, root *kv.Root, n int) (uint64, error) {
	m.tokens = m.tokens[:0]
	hash := uint64(0)
	if root != nil {
		hash = uint64(root.Number)
	}
	for pos := range n {
		key, value := s.Plain(0, 0, pos)
		id := int32(value[0])
		hash = roll(hash, id)
		if int(value[1]) != pos || key[0] != float32(hash&0xffffff) || key[1] != float32(hash>>40) {
			return 0, fmt.Errorf("toy: cache holds position %d, token %d with another past where position %d was wanted", int(value[1]), id, pos)
		}
		m.tokens = append(m.tokens, id)
	}
	return hash, nil
}

// Row returns what Forward gives for the last of tokens, computed without a cache.
func (m *Model) Row(tokens []int32) []float32 {
	row, hash := make([]float32, m.Config().Outputs), uint64(0)
	for _, id := range tokens {
		hash = roll(hash, id)
	}
	m.fill(row, tokens, hash)
	return row
}

func (m *Model) fill(row []float32, tokens []int32, hash uint64) {
	if m.Logits != nil {
		m.Logits(tokens, row)
		return
	}
	for i := range row {
		row[i] = float32(roll(hash, int32(i))>>40)/(1<<21) - 4 // [-4, 4)
	}
}

// roll mixes a token into a hash (the finaliser of splitmix64).
func roll(hash uint64, id int32) uint64 {
	h := hash + 0x9e3779b97f4a7c15*(uint64(uint32(id))+1)
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
