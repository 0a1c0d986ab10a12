package kvevents

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/lutra-lm/lutra/models/kv"
)

// medium says where blocks are, in vLLM's words: where attention reads them. vLLM says so
// of its CPU backend too; to llm-d's picker "CPU" is a slower tier.
const medium = "GPU"

// event is an entry of a batch.
type event struct {
	kind   kind
	hashes []uint64
	parent uint64   // stored: of the block before; 0: there is none
	root   *kv.Root // stored: of their prefixes; nil: the model's own
	tokens []int32  // stored: of all blocks
}

// mostBatch bounds a batch: tokens and hashes together. Its last event may exceed it by a
// block, or by the hashes of a whole cache.
const mostBatch = 1 << 14

// size returns what an event counts for mostBatch.
func (e *event) size() int { return len(e.tokens) + len(e.hashes) }

// batches divides events into batches.
func batches(list []event) (all [][]event) {
	size, from := 0, 0
	for i := range list {
		if size += list[i].size(); size >= mostBatch || i == len(list)-1 {
			all = append(all, list[from:i+1])
			size, from = 0, i+1
		}
	}
	return all
}

// rootHash returns the parent of the first blocks of a model, or of a variant of it.
func rootHash(model string, root *kv.Root) uint64 {
	of := "lutra kv\x00" + model
	if root != nil {
		of += "\x00" + root.Name
	}
	h := sha256.Sum256([]byte(of))
	return binary.BigEndian.Uint64(h[:])
}

// blockHash hashes a block of tokens after a prefix of hash parent. It is never 0, which
// means no block to routers.
func blockHash(parent uint64, tokens []int32) uint64 {
	data := binary.BigEndian.AppendUint64(make([]byte, 0, 8+4*len(tokens)), parent)
	for _, t := range tokens {
		data = binary.LittleEndian.AppendUint32(data, uint32(t))
	}
	h := sha256.Sum256(data)
	return max(1, binary.BigEndian.Uint64(h[:]))
}

// events translates the changes of a feed: blocks that follow each other become one event.
// alone tells that the pod has no other feed, which clearing everything would clear too.
func (f *feed) events(changes []change, alone bool) (list []event) {
	last := int32(-1) // the block stored before
	for _, c := range changes {
		n := len(list)
		switch c.kind {
		case stored:
			before, known := f.hashes[c.parent]
			if c.parent < 0 {
				before = rootHash(f.model, c.root)
			} else if !known {
				panic("kvevents: a block is stored behind one that is not")
			}
			h := blockHash(before, c.tokens)
			f.hashes[c.block] = h
			if n > 0 && list[n-1].kind == stored && c.parent >= 0 && c.parent == last && list[n-1].size() < mostBatch {
				list[n-1].hashes = append(list[n-1].hashes, h)
				list[n-1].tokens = append(list[n-1].tokens, c.tokens...)
			} else {
				if c.parent < 0 {
					before = 0
				}
				list = append(list, event{stored, []uint64{h}, before, c.root, c.tokens})
			}
			last = c.block
		case removed:
			h := f.hashes[c.block]
			delete(f.hashes, c.block)
			if n > 0 && list[n-1].kind == removed && list[n-1].size() < mostBatch {
				list[n-1].hashes = append(list[n-1].hashes, h)
			} else {
				list = append(list, event{kind: removed, hashes: []uint64{h}})
			}
		case cleared:
			if alone {
				list = append(list, event{kind: cleared})
			} else if len(f.hashes) > 0 {
				list = append(list, event{kind: removed, hashes: slices.Sorted(maps.Values(f.hashes))})
			}
			clear(f.hashes)
		}
	}
	return list
}

// encode returns a batch as vLLM's KVEventBatch: [time, events, rank].
func encode(at time.Time, list []event) []byte {
	var out bytes.Buffer
	e := msgpack.NewEncoder(&out)
	write := func(errs ...error) {
		for _, err := range errs {
			if err != nil {
				panic(err) // a bytes.Buffer takes everything
			}
		}
	}
	hashes := func(all []uint64) {
		write(e.EncodeArrayLen(len(all)))
		for _, h := range all {
			write(e.EncodeUint64(h))
		}
	}
	write(e.EncodeArrayLen(3), e.EncodeFloat64(float64(at.UnixNano())/1e9), e.EncodeArrayLen(len(list)))
	for _, ev := range list {
		switch ev.kind {
		case stored:
			write(e.EncodeArrayLen(8), e.EncodeString("BlockStored"))
			hashes(ev.hashes)
			if ev.parent == 0 {
				write(e.EncodeNil())
			} else {
				write(e.EncodeUint64(ev.parent))
			}
			write(e.EncodeArrayLen(len(ev.tokens)))
			for _, t := range ev.tokens {
				write(e.EncodeInt(int64(t)))
			}
			write(e.EncodeInt(int64(len(ev.tokens) / len(ev.hashes))))
			if ev.root == nil {
				write(e.EncodeNil(), e.EncodeString(medium), e.EncodeNil())
			} else {
				write(e.EncodeInt(int64(ev.root.ID)), e.EncodeString(medium), e.EncodeString(ev.root.Name))
			}
		case removed:
			write(e.EncodeArrayLen(3), e.EncodeString("BlockRemoved"))
			hashes(ev.hashes)
			write(e.EncodeString(medium))
		case cleared:
			write(e.EncodeArrayLen(1), e.EncodeString("AllBlocksCleared"))
		}
	}
	write(e.EncodeInt(0))
	return out.Bytes()
}
