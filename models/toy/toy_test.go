package toy

import (
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

func TestLogitsDependOnThePastAndNotOnHowItWasComputed(t *testing.T) {
	m := &Model{Vocab: 16}
	cache := m.NewCache(8, 4)
	whole := forward(t, m, cache, cache.Open(nil), []int32{1, 2, 3, 4, 5})
	if want := m.Row([]int32{1, 2, 3, 4, 5}); !slices.Equal(whole, want) {
		t.Errorf("Forward gave %v, want %v", whole, want)
	}
	s := cache.Open(nil)
	forward(t, m, cache, s, []int32{1, 2, 3})
	if got := forward(t, m, cache, s, []int32{4, 5}); !slices.Equal(got, whole) {
		t.Errorf("two chunks gave %v, want %v", got, whole)
	}
	if got := forward(t, m, cache, cache.Open(nil), []int32{2, 1, 3, 4, 5}); slices.Equal(got, whole) {
		t.Error("another past gave the same logits")
	}
}

func TestAPositionThatWasNotComputedFailsTheStep(t *testing.T) {
	m := &Model{Vocab: 16}
	cache := m.NewCache(8, 4)
	s := cache.Open(nil)
	if err := s.Grow(3); err != nil {
		t.Fatal(err)
	}
	var b models.Batch
	b.Add(s, 2, 1, 7)
	if err := m.Forward(&b, cache); err == nil {
		t.Error("Forward read positions that nobody wrote, want an error")
	}
}

// forward appends tokens to s and returns the last row of logits.
func forward(t *testing.T, m *Model, cache *kv.Cache, s *kv.Sequence, tokens []int32) []float32 {
	t.Helper()
	pos := s.Len()
	if err := s.Grow(len(tokens)); err != nil {
		t.Fatal(err)
	}
	var b models.Batch
	b.Add(s, pos, 1, tokens...)
	if err := m.Forward(&b, cache); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(b.Logits)
}
