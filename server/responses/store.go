package responses

import (
	"container/list"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/server/api"
)

// Store keeps responses with the items that led to them, for requests that follow or
// refer to them. It is bounded in bytes, which it counts, and in time: what was used
// least recently goes first. Items that several responses share are kept once.
type Store struct {
	most int           // bytes
	time time.Duration // that a response is kept after it was used

	mu      sync.Mutex
	bytes   int
	byID    map[string]*list.Element
	order   list.List // of *stored, the latest first
	refs    map[*item]int
	items   map[itemKey]*item
	running map[string]*run // responses that are being streamed
}

// stored is a response. Its owner is who may see it.
type stored struct {
	*record
	owner string
	size  int // without its items
	used  time.Time
}

// itemKey is an item's id as its owner knows it.
type itemKey struct{ owner, id string }

// run is a response that is being made.
type run struct {
	owner  string
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// owned is a store as an owner sees it.
type owned struct {
	s     *Store
	owner string
}

// ErrCancelled is the cause of the end of a response that its owner has cancelled.
var ErrCancelled = api.InvalidStatus(http.StatusConflict, "response_cancelled", "", "The response was cancelled.")

// record is a complete response with what led to it. It does not change.
type record struct {
	response response
	input    []*item // all that the model has read, the oldest first
	steps    []step

	encrypted bool // its thoughts have encrypted contents
}

// step is an event's addition to the output: so many bytes of the text of an item, and so many tokens with their
// log-probabilities. All other events follow from these.
type step struct{ item, bytes, tokens int32 }

// keptAlive is the item of a step that added nothing.
const keptAlive = -1

// newStore makes a store that keeps at most most bytes, each response for keep after it
// was last used.
func newStore(most int, keep time.Duration) *Store {
	return &Store{most: most, time: keep, byID: map[string]*list.Element{}, refs: map[*item]int{}, items: map[itemKey]*item{}, running: map[string]*run{}}
}

// Bytes returns the size of all that is kept.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return int64(s.bytes)
}

// of returns what an owner may see of the store.
func (s *Store) of(owner string) owned { return owned{s, owner} }

// put keeps a response. One that is larger than a quarter of the store, with all that
// led to it, is not kept.
func (o owned) put(r *record) bool {
	e := &stored{record: r, owner: o.owner, size: r.size()}
	total := e.size
	for it := range r.all {
		total += it.size()
	}
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if total > s.most/4 {
		return false
	}
	e.used = time.Now()
	s.byID[r.response.ID] = s.order.PushFront(e)
	s.bytes += e.size
	for it := range r.all {
		if s.refs[it]++; s.refs[it] > 1 {
			continue
		}
		s.bytes += it.size()
		s.items[itemKey{o.owner, it.ID}] = it
	}
	for s.bytes > s.most {
		s.drop(s.order.Back())
	}
	s.expire()
	return true
}

// drop needs mu.
func (s *Store) drop(at *list.Element) {
	e := s.order.Remove(at).(*stored)
	delete(s.byID, e.response.ID)
	s.bytes -= e.size
	for it := range e.all {
		if s.refs[it]--; s.refs[it] > 0 {
			continue
		}
		delete(s.refs, it)
		s.bytes -= it.size()
		if key := (itemKey{e.owner, it.ID}); s.items[key] == it {
			delete(s.items, key)
		}
	}
}

// expire drops what nobody has used for too long. It needs mu.
func (s *Store) expire() {
	for at := s.order.Back(); at != nil && time.Since(at.Value.(*stored).used) > s.time; at = s.order.Back() {
		s.drop(at)
	}
}

// find returns a response that the owner may see, nil if there is none.
func (o owned) find(id string) *record {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	at := s.byID[id]
	if at == nil || at.Value.(*stored).owner != o.owner {
		return nil
	}
	s.order.MoveToFront(at)
	e := at.Value.(*stored)
	e.used = time.Now()
	return e.record
}

// item returns an item of any response that is kept.
func (o owned) item(id string) (*item, bool) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.expire()
	it := o.s.items[itemKey{o.owner, id}]
	return it, it != nil
}

// Delete forgets a response, and tells whether it was there.
func (o owned) Delete(id string) bool {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byID[id]
	if at == nil || at.Value.(*stored).owner != o.owner {
		return false
	}
	s.drop(at)
	return true
}

// Begin says that a response is being made, which Cancel ends by calling cancel. The
// caller calls end when it has been kept, or will not be.
func (o owned) Begin(id string, cancel context.CancelCauseFunc) (end func()) {
	r := &run{o.owner, cancel, make(chan struct{})}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.running[id] = r
	return func() {
		o.s.mu.Lock()
		delete(o.s.running, id)
		o.s.mu.Unlock()
		close(r.ended)
	}
}

// Cancel ends the making of a response and waits until it has ended. It is false for one
// that is not being made.
func (o owned) Cancel(ctx context.Context, id string) (bool, error) {
	o.s.mu.Lock()
	r := o.s.running[id]
	o.s.mu.Unlock()
	if r == nil || r.owner != o.owner {
		return false, nil
	}
	r.cancel(ErrCancelled)
	select {
	case <-r.ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// all yields the items that a record holds.
func (r *record) all(yield func(*item) bool) {
	for _, list := range [][]*item{r.input, r.response.Output} {
		for _, it := range list {
			if !yield(it) {
				return
			}
		}
	}
}

// size returns about how many bytes a record holds besides its items.
func (r *record) size() int {
	p := &r.response
	n := 2048 + 12*len(r.steps) + 16*(len(r.input)+len(p.Output)) + len(p.Model) + len(p.Metadata) + len(p.ToolChoice) + len(p.User) + len(p.Scaling)
	if p.Instructions != nil {
		n += len(*p.Instructions)
	}
	for _, v := range []any{p.Tools, p.Text} { // parts of a request
		raw, _ := json.Marshal(v)
		n += 2 * len(raw)
	}
	return n
}
