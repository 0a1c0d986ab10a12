package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/zmtp"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/toy"
)

const (
	pod   = "10.0.0.7"
	block = 4
)

func port(a net.Addr) int { return a.(*net.TCPAddr).Port }

// eventually waits until what is so.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 min", what)
		}
	}
}

// publisher makes one on ports that are free.
func publisher(t *testing.T) *Publisher {
	t.Helper()
	any := zmtp.Endpoint{Addr: "127.0.0.1:0", Binds: true}
	p, err := New(Options{Events: any, Replay: &any, Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// engine runs a toy model over a small cache that p tells of.
func engine(t *testing.T, p *Publisher, name string, blocks int) *batcher.Engine {
	t.Helper()
	m := &toy.Model{}
	cache := m.NewCache(blocks, block)
	cache.Observe(p.Feed(name))
	e := batcher.New(m, cache, batcher.DefaultOptions())
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return e
}

// quiet waits until the engines are idle and the index knows all that they told.
func quiet(t *testing.T, p *Publisher, x *index, engines ...*batcher.Engine) {
	t.Helper()
	eventually(t, "the engines are idle", func() bool {
		for _, e := range engines {
			if st := e.Stats(); st.Used > 0 || st.Running > 0 || st.Waiting > 0 {
				return false
			}
		}
		return true
	})
	eventually(t, "the index knows all", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.feeds {
			f.mu.Lock()
			n := len(f.changes) - f.undone
			f.mu.Unlock()
			if n > 0 {
				return false
			}
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.seen == p.log.next
	})
}

// prompts make prompts that share beginnings, of an alphabet of three.
func prompt(rng *rand.Rand) []int32 {
	ids := make([]int32, 1+rng.IntN(50))
	shared := rng.IntN(4)
	for i := range ids {
		if ids[i] = int32(shared); i > 30-10*shared {
			ids[i] = int32(rng.IntN(3))
		}
	}
	return ids
}

// request computes a prompt, some tokens behind it, and forks, as a request would. It
// returns how many tokens of the prompt the engine had.
func request(t *testing.T, e *batcher.Engine, ids []int32, choices, tokens int) int {
	s, err := e.Open(t.Context(), ids)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer s.Close()
	seqs, err := s.Fork(t.Context(), choices)
	if err != nil {
		t.Error(err)
		return 0
	}
	for i, k := range seqs {
		for _, err := range k.Generate(t.Context(), sampling.Params{MaxTokens: tokens, Temperature: 1, Seed: uint64(i), IgnoreEOS: true}) {
			if err != nil {
				t.Error(err)
			}
		}
		k.Close()
	}
	return s.CachedPrompt()
}

// requests are as many as LUTRA_KV_REQUESTS says, or a few.
func requests(t *testing.T, few int) int {
	t.Helper()
	if s := os.Getenv("LUTRA_KV_REQUESTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return few
}

// The picker's index agrees with the engines' own prefix hits, of two models in one process, one
// of them with two adapters, whose small caches evict all the time.
func TestAnIndexMadeOfEventsKnowsWhatTheEngineFinds(t *testing.T) {
	p, x := publisher(t), newIndex(block)
	defer p.Close()
	subscribe(t, p, x)
	names := []string{"owl", "otter", "sql", "poet"}
	engines := []*batcher.Engine{engine(t, p, names[0], 64), engine(t, p, names[1], 40)}
	for i, name := range names[2:] {
		engines = append(engines, engines[0].With(&models.Variant{Root: kv.Root{Number: int32(i + 1), ID: i + 1, Name: name}}))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	hits, evicting := 0, 0
	compare := func(i int) {
		ids, which := prompt(rng), rng.IntN(len(engines))
		quiet(t, p, x, engines...)
		want := x.prefix(pod, names[which], ids[:len(ids)-1]) // the last token is computed anyway
		got := request(t, engines[which], ids, 1+rng.IntN(2), 1+rng.IntN(12))
		if got != want {
			t.Fatalf("request %d: the engine had %d tokens of the prompt %v, the index thought %d", i, got, ids, want)
		}
		if hits += got; got > 0 {
			evicting++
		}
	}
	n := requests(t, 400)
	for i := range n / 2 {
		compare(i)
	}
	for range 4 { // many at once, and again
		var wg sync.WaitGroup
		for range max(1, n/10) {
			ids, which := prompt(rng), rng.IntN(len(engines))
			wg.Go(func() { request(t, engines[which], ids, 2, 3) })
			if rng.IntN(8) == 0 {
				wg.Wait()
			}
		}
		wg.Wait()
		for i := range n / 40 {
			compare(n/2 + i)
		}
	}
	quiet(t, p, x, engines...)
	x.check(t)
	if removed := len(x.keys); hits == 0 || removed < 200 {
		t.Errorf("%d tokens were found and %d hashes told of: too few to show anything", hits, removed)
	}
	t.Logf("%d requests, %d of those compared found %d tokens; %d batches, %d hashes", n, evicting, hits, x.seen, len(x.keys))
}

// The publisher may stand still: the engine goes on, and nothing is lost.
func TestTheEngineNeverWaitsForThePublisher(t *testing.T) {
	const blocks = 48
	p, x := publisher(t), newIndex(block)
	defer p.Close()
	subscribe(t, p, x)
	e := engine(t, p, "owl", blocks)
	rng := rand.New(rand.NewPCG(3, 4))
	p.mu.Lock()
	for range 200 {
		request(t, e, prompt(rng), 2, 4)
	}
	f := p.feeds[0]
	f.mu.Lock()
	if n := len(f.changes); n == 0 || n > 4*blocks {
		t.Errorf("%d changes wait of a cache of %d blocks", n, blocks)
	}
	f.mu.Unlock()
	p.mu.Unlock()
	for range 40 {
		quiet(t, p, x, e)
		ids := prompt(rng)
		if want, got := x.prefix(pod, "owl", ids[:len(ids)-1]), request(t, e, ids, 1, 3); got != want {
			t.Fatalf("the engine had %d tokens of the prompt %v, the index thought %d", got, ids, want)
		}
	}
	x.check(t)
}

// BenchmarkChange measures the engine's time for telling of a block that comes and goes.
func BenchmarkChange(b *testing.B) {
	f := newFeed("owl", make(chan<- struct{}, 1))
	tokens := make([]int32, 32)
	for b.Loop() {
		f.Stored(1, -1, nil, tokens)
		f.Removed(1)
	}
}

// store has a feed tell of n blocks in a row, the first of them number from.
func store(o kv.Observer, from, n int) {
	for i := range n {
		b := int32(from + i)
		parent := b - 1
		if i == 0 {
			parent = -1
		}
		o.Stored(b, parent, nil, []int32{b, 1, 2, 3})
	}
}

func TestHashesAreThoseOfThePrefixInEveryProcess(t *testing.T) {
	a, b := newFeed("owl", make(chan<- struct{}, 1)), newFeed("owl", make(chan<- struct{}, 1))
	store(a, 0, 3)
	b.Stored(9, -1, nil, []int32{0, 1, 2, 3})
	b.Stored(4, 9, nil, []int32{1, 1, 2, 3})
	one, other := a.events(a.take(), true), b.events(b.take(), true)
	if one[0].hashes[1] != other[0].hashes[1] || one[0].hashes[0] == one[0].hashes[1] {
		t.Errorf("hashes %x and %x", one[0].hashes, other[0].hashes)
	}
	// They are what other processes have; a change voids the indices of running fleets.
	if got, want := one[0].hashes[0], uint64(0xe6a9c876db7bce0e); got != want {
		t.Errorf("the hash of the first block is %#x, want %#x", got, want)
	}
	c := newFeed("otter", make(chan<- struct{}, 1))
	store(c, 0, 1)
	if c.events(c.take(), true)[0].hashes[0] == one[0].hashes[0] {
		t.Error("two models have the same hash for the same tokens")
	}
	// Adapters are told apart by their names, whatever the order in which a process met them.
	sql, same, poet := &kv.Root{Number: 1, ID: 1, Name: "sql"}, &kv.Root{Number: 9, ID: 1, Name: "sql"}, &kv.Root{Number: 2, ID: 2, Name: "poet"}
	for i, root := range []*kv.Root{sql, same, poet} {
		a.Stored(int32(10+i), -1, root, []int32{0, 1, 2, 3})
	}
	of := a.events(a.take(), true)
	if of[0].hashes[0] != of[1].hashes[0] || of[0].hashes[0] == of[2].hashes[0] || of[0].hashes[0] == one[0].hashes[0] || of[2].root != poet {
		t.Errorf("the adapters' events are %+v, the model's %+v", of, one)
	}
}

// However long nobody takes the changes, no more of them wait than there are blocks.
func TestWhatWaitsIsBoundedByTheCache(t *testing.T) {
	f := newFeed("owl", make(chan<- struct{}, 1))
	store(f, 0, 8)
	f.events(f.take(), true)
	for range 1000 {
		for b := int32(7); b >= 0; b-- {
			f.Removed(b)
		}
		store(f, 0, 8)
	}
	if n := len(f.changes); n > 4*8+2 {
		t.Errorf("%d changes wait of a cache of 8 blocks", n)
	}
	list := f.events(f.take(), true)
	if len(list) != 2 || list[0].kind != removed || len(list[0].hashes) != 8 || list[1].kind != stored || len(list[1].hashes) != 8 {
		t.Errorf("events %+v", list)
	}
}

func TestADroppedCacheIsTold(t *testing.T) {
	p, x := publisher(t), newIndex(block)
	subscribe(t, p, x)
	m := &toy.Model{}
	cache := m.NewCache(16, block)
	cache.Observe(p.Feed("owl"))
	ids := []int32{1, 2, 3, 4, 5, 6, 7, 8}
	fill := func() {
		s := cache.Open(nil)
		if err := s.Grow(len(ids)); err != nil {
			t.Fatal(err)
		}
		s.Seal(ids)
		s.Release()
		quiet(t, p, x)
		if got := x.prefix(pod, "owl", ids); got != 8 {
			t.Fatalf("the index knows %d tokens, want 8", got)
		}
	}
	fill()
	cache.Forget()
	quiet(t, p, x)
	if got := x.prefix(pod, "owl", ids); got != 0 {
		t.Errorf("the index knows %d tokens of an empty cache", got)
	}
	fill()
	p.Close()
	eventually(t, "the end is told", func() bool { return x.prefix(pod, "owl", ids) == 0 })
	x.check(t)
}

// One cache of several is dropped: the picker would drop all of a pod if it were told of
// AllBlocksCleared.
func TestADroppedCacheLeavesTheOthers(t *testing.T) {
	p, x := publisher(t), newIndex(block)
	subscribe(t, p, x)
	owl, otter := p.Feed("owl"), p.Feed("otter")
	store(owl, 0, 3)
	store(otter, 0, 2)
	owl.Cleared()
	store(owl, 7, 1)
	quiet(t, p, x)
	if a, b, c := x.prefix(pod, "owl", []int32{0, 1, 2, 3}), x.prefix(pod, "otter", []int32{0, 1, 2, 3, 1, 1, 2, 3}), x.prefix(pod, "owl", []int32{7, 1, 2, 3}); a != 0 || b != 8 || c != 4 {
		t.Errorf("the index knows %d, %d and %d tokens, want 0, 8 and 4", a, b, c)
	}
	p.Close()
	x.check(t)
}

// Who comes late asks for what it has missed, as llm-d's router does.
func TestPastBatchesAreSentAgain(t *testing.T) {
	p := publisher(t)
	defer p.Close()
	f := p.Feed("owl")
	for i := range 5 {
		store(f, 10*i, 1)
		eventually(t, "a batch", func() bool { return p.Stats().Batches == int64(i+1) })
	}
	dealer := zmq4.NewDealer(t.Context())
	defer dealer.Close()
	if err := dealer.Dial(fmt.Sprintf("tcp://127.0.0.1:%d", port(p.router.Addr()))); err != nil {
		t.Fatal(err)
	}
	for _, from := range []uint64{0, 3, 99} {
		if err := dealer.SendMulti(zmq4.NewMsgFrom(nil, binary.BigEndian.AppendUint64(nil, from))); err != nil {
			t.Fatal(err)
		}
		x := newIndex(block)
		x.next = from
		for {
			msg, err := dealer.Recv()
			if err != nil || len(msg.Frames) != 4 || len(msg.Frames[0]) != 0 {
				t.Fatalf("replay of %d: %q, %v", from, msg.Frames, err)
			}
			if binary.BigEndian.Uint64(msg.Frames[2]) == math.MaxUint64 {
				if len(msg.Frames[1])+len(msg.Frames[3]) != 0 {
					t.Errorf("the end is %q", msg.Frames)
				}
				break
			}
			x.read(msg.Frames[1], msg.Frames[2], msg.Frames[3])
		}
		x.check(t)
		if want := max(0, 5-int(from)); int(x.seen) != want {
			t.Errorf("from %d on there were %d batches, want %d", from, x.seen, want)
		}
	}
	if p.Stats().Replays != 3 {
		t.Errorf("%d replays counted, want 3", p.Stats().Replays)
	}
}

func TestTheLogIsBounded(t *testing.T) {
	var l log
	for range mostKept + 10 {
		l.add(nil, make([]byte, 8))
	}
	if n := len(l.entries); n != mostKept || l.since(0)[0].seq != 10 || l.bytes != 8*n {
		t.Errorf("%d batches of %d bytes kept, the first number %d", n, l.bytes, l.since(0)[0].seq)
	}
	for range 4 {
		l.add(nil, make([]byte, mostKeptBytes/2))
	}
	if len(l.entries) != 2 || l.bytes != mostKeptBytes {
		t.Errorf("%d batches of %d bytes kept", len(l.entries), l.bytes)
	}
}
