package responses

import (
	"container/list"
	"encoding/json"
	"sync"

	"github.com/lutra-lm/lutra/models/template"
)

// Store keeps responses and what was said up to each, for requests that follow. What
// was used least recently goes first.
type Store struct {
	most int // bytes

	mu    sync.Mutex
	bytes int
	byID  map[string]*list.Element
	order list.List // of *stored, the latest first
}

// stored is a response. Its owner is who may see it.
type stored struct {
	id, owner string
	said      []template.Message
	response  json.RawMessage
	size      int
}

// NewStore keeps so many bytes.
func NewStore(most int) *Store { return &Store{most: most, byID: map[string]*list.Element{}} }

// Put keeps a response. One that is larger than a quarter of the store is not kept.
func (s *Store) Put(owner, id string, said []template.Message, response json.RawMessage) {
	e := &stored{id: id, owner: owner, said: said, response: response, size: len(response) + 512}
	for i := range said {
		m := &said[i]
		text, _ := m.Content.(string)
		e.size += len(text) + len(m.ReasoningContent) + 256
		calls, _ := m.ToolCalls.([]any)
		for _, c := range calls {
			raw, _ := c.(json.RawMessage)
			e.size += len(raw) + 64
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.size > s.most/4 {
		return
	}
	s.byID[id] = s.order.PushFront(e)
	for s.bytes += e.size; s.bytes > s.most; {
		s.drop(s.order.Back())
	}
}

// drop needs mu.
func (s *Store) drop(at *list.Element) {
	e := s.order.Remove(at).(*stored)
	delete(s.byID, e.id)
	s.bytes -= e.size
}

// find needs mu.
func (s *Store) find(owner, id string) *stored {
	at := s.byID[id]
	if at == nil || at.Value.(*stored).owner != owner {
		return nil
	}
	s.order.MoveToFront(at)
	return at.Value.(*stored)
}

// Said is what was said up to a response, and in it.
func (s *Store) Said(owner, id string) ([]template.Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(owner, id); e != nil {
		return e.said, true
	}
	return nil, false
}

// Get is a response as it was sent.
func (s *Store) Get(owner, id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(owner, id); e != nil {
		return e.response, true
	}
	return nil, false
}

// Delete forgets a response, and tells whether it was there.
func (s *Store) Delete(owner, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(owner, id) == nil {
		return false
	}
	s.drop(s.byID[id])
	return true
}
