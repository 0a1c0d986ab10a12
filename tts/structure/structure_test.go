package structure

import (
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/schema"
)

func newFormat(t *testing.T) *Format {
	t.Helper()
	g, err := schema.Compile([]byte(`{"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 9}`), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(id int32) []byte { return []byte{byte(id)} }
	return New(g, grammar.NewVocabulary(256, text), text)
}

func tokens(text string) (ids []int32) {
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids
}

func TestAPlaceIsFoundFromAnyEarlierOne(t *testing.T) {
	f := newFormat(t)
	whole := tokens(`["a","b"]`)
	for _, n := range []int{len(whole), 3, 0, 5, len(whole)} { // as sequences that are paused and forked ask
		s, err := f.State(whole[:n])
		if err != nil || s == nil || s.Accepts() != (n == len(whole)) {
			t.Errorf("after %d tokens: %v, %v", n, s, err)
		}
	}
	if s, err := f.State(tokens(`["c`)); s != nil || err != nil {
		t.Errorf("a text that is none: %v, %v", s, err)
	}
	if s, err := f.State(tokens(`["c",`)); s != nil || err != nil {
		t.Errorf("what follows it: %v, %v", s, err)
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	f := newFormat(t)
	whole := tokens(`["a","b","a","b","a","b","a"]`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			order := slices.Clone(whole)
			for n := range order {
				s, err := f.State(order[:(n*(i+1))%len(order)])
				if err != nil || s == nil {
					t.Errorf("%v, %v", s, err)
					return
				}
				mask, err := f.Mask(s)
				if err != nil || mask.Count() == 0 {
					t.Errorf("%d tokens, %v", mask.Count(), err)
				}
			}
		})
	}
	wg.Wait()
}
