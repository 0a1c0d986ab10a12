package kvevents

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// index is the picker's. It makes its own keys of the events' tokens, chained as requests' are, and learns by the engines'
// hashes which pods have which.
type index struct {
	block int // tokens a key

	mu      sync.Mutex
	keys    map[uint64]uint64          // engine's hash → key
	pods    map[uint64]map[string]bool // key → pods
	seen    uint64                     // batches
	next    uint64                     // the sequence number to come
	faults  []string
	unknown int // blocks whose parent it did not know
}

func newIndex(block int) *index {
	return &index{block: block, keys: map[uint64]uint64{}, pods: map[uint64]map[string]bool{}}
}

// key is the picker's own hash, which is not the engine's.
func key(parent uint64, tokens []int32) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, parent, tokens)
	return h.Sum64()
}

// root is the key that the first blocks of a model, or of an adapter, follow.
func root(model string) uint64 { return key(0, []int32([]rune(model))) }

// prefix returns the number of a prompt's tokens that a pod has.
func (x *index) prefix(pod, model string, prompt []int32) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	parent := root(model)
	for n+x.block <= len(prompt) {
		parent = key(parent, prompt[n:n+x.block])
		if !x.pods[parent][pod] {
			break
		}
		n += x.block
	}
	return n
}

// read takes in a message's frames.
func (x *index) read(topic, seq, payload []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fault := func(format string, args ...any) { x.faults = append(x.faults, fmt.Sprintf(format, args...)) }
	parts := strings.Split(string(topic), "@")
	var batch []any
	if err := msgpack.Unmarshal(payload, &batch); err != nil || len(parts) != 3 || parts[0] != "kv" || len(seq) != 8 || len(batch) != 3 {
		fault("topic %q, sequence number %v, batch %v: %v", topic, seq, batch, err)
		return
	}
	if n := binary.BigEndian.Uint64(seq); n != x.next {
		fault("sequence number %d, want %d", n, x.next)
	}
	x.next++
	if at, ok := batch[0].(float64); !ok || at < 1.6e9 {
		fault("time %v", batch[0])
	}
	for _, e := range batch[1].([]any) {
		e := e.([]any)
		switch e[0] {
		case "BlockStored":
			x.stored(parts[1], parts[2], e, fault)
		case "BlockRemoved":
			for _, h := range e[1].([]any) {
				k, ok := x.keys[h.(uint64)]
				if !ok || !x.pods[k][parts[1]] {
					fault("a block is removed that was not there: %x", h)
				}
				delete(x.pods[k], parts[1])
			}
			if e[2] != "GPU" || len(e) != 3 {
				fault("removed: %v", e)
			}
		case "AllBlocksCleared":
			for _, pods := range x.pods {
				delete(pods, parts[1])
			}
		default:
			fault("event %v", e[0])
		}
	}
	x.seen++
}

// stored takes in ["BlockStored", hashes, parent, tokens, block size, lora id, medium, lora name].
func (x *index) stored(pod, model string, e []any, fault func(string, ...any)) {
	hashes, ids := e[1].([]any), e[3].([]any)
	tokens := make([]int32, len(ids))
	for i, id := range ids {
		var n int64
		fmt.Sscan(fmt.Sprint(id), &n)
		tokens[i] = int32(n)
	}
	if len(e) != 8 || fmt.Sprint(e[4]) != fmt.Sprint(x.block) || len(tokens) != len(hashes)*x.block || (e[5] == nil) != (e[7] == nil) || e[6] != "GPU" {
		fault("stored: %v", e)
		return
	}
	if e[7] != nil { // an adapter's name takes the place of the model's
		model = e[7].(string)
	}
	parent := root(model)
	if e[2] != nil {
		known, ok := x.keys[e[2].(uint64)]
		if !ok {
			x.unknown++
			return
		}
		parent = known
	}
	for i, h := range hashes {
		parent = key(parent, tokens[i*x.block:(i+1)*x.block])
		if x.pods[parent] == nil {
			x.pods[parent] = map[string]bool{}
		}
		if x.pods[parent][pod] {
			fault("a block is stored twice: %x", h)
		}
		x.keys[h.(uint64)], x.pods[parent][pod] = parent, true
	}
}

// subscribe has an index read what a publisher sends, by another implementation of ZeroMQ.
func subscribe(t *testing.T, p *Publisher, x *index) {
	t.Helper()
	sub := zmq4.NewSub(t.Context())
	t.Cleanup(func() { sub.Close() })
	if err := sub.Dial(fmt.Sprintf("tcp://127.0.0.1:%d", port(p.pub.Addr()))); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, "kv@"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the subscription arrives", func() bool { return p.Stats().Subscribers > 0 })
	go func() {
		for {
			msg, err := sub.Recv()
			if err != nil {
				return
			}
			frames := slices.Clone(msg.Frames)
			for len(frames) < 3 {
				frames = append(frames, nil)
			}
			x.read(frames[0], frames[1], frames[2])
		}
	}()
}

// check fails for what was wrong with the messages.
func (x *index) check(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.faults) > 0 || x.unknown > 0 {
		t.Errorf("%d faults, the first of them %.3q; %d blocks without a parent", len(x.faults), x.faults, x.unknown)
	}
}
