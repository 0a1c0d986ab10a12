package batcher

import (
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/toy"
)

// confident is a toy model whose next token is nearly always 7, and otherwise
// 8: candidates agree for a while.
func confident() *toy.Model {
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		for i := range row {
			row[i] = -100
		}
		row[7], row[8] = 4, float32(len(tokens)%3)
	}}
}

// generateAll reads all generations to their ends.
func generateAll(t *testing.T, seqs []*Sequence, params []sampling.Params) [][]int32 {
	t.Helper()
	out := make([][]int32, len(seqs))
	var all sync.WaitGroup
	for i, run := range GenerateAll(t.Context(), seqs, params) {
		all.Go(func() {
			for tok, err := range run {
				if err != nil {
					t.Errorf("Generate: %v", err)
					return
				}
				out[i] = append(out[i], tok.ID)
			}
		})
	}
	all.Wait()
	return out
}

func TestForksAreComputedOnceAsLongAsTheyAgree(t *testing.T) {
	m := confident()
	const n, length = 8, 24
	prompt := counting(10)
	var params []sampling.Params
	distinct := map[string]bool{} // contexts that some candidate samples from
	var want [][]int32
	for i := range n {
		p := sampling.Params{Temperature: 1, Seed: 3, Candidate: i, MaxTokens: length}
		params = append(params, p)
		want = append(want, expect(m, prompt, length, p))
		for k := range length {
			key := ""
			for _, id := range want[i][:k] {
				key += string(rune(id))
			}
			distinct[key] = true
		}
	}
	start(t, m, 256, 4, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(prompt...)
		defer s.Close()
		seqs, err := s.Fork(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range seqs {
			defer k.Close()
		}
		got := generateAll(t, seqs, params)
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("candidate %d: %v, want %v", i, got[i], want[i])
			}
		}
		computed := m.Computed() - (len(prompt) - 1)
		if computed != len(distinct) {
			t.Errorf("%d tokens computed, want %d for that many different contexts", computed, len(distinct))
		}
		st := r.Stats()
		if int(st.SavedTokens) != n*length-computed || st.GeneratedTokens != n*length {
			t.Errorf("%d tokens saved, %d generated; want %d, %d", st.SavedTokens, st.GeneratedTokens, n*length-computed, n*length)
		}
	})
	if len(distinct) == n*length || len(distinct) == length {
		t.Errorf("%d different contexts of %d tokens: the candidates must agree, but not all the way", len(distinct), n*length)
	}
}

func TestAFollowerWhoseLeaderLeavesGoesOnByItself(t *testing.T) {
	m := confident()
	prompt := counting(9)
	p := sampling.Params{MaxTokens: 12}
	want := expect(m, prompt, 12, p)
	start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
		root := r.open(prompt...)
		defer root.Close()
		seqs, err := root.Fork(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i, run := range GenerateAll(t.Context(), seqs, []sampling.Params{p, p, p}) {
			all.Go(func() {
				defer seqs[i].Close()
				var got []int32
				for tok, err := range run {
					if err != nil {
						t.Errorf("Generate: %v", err)
						return
					}
					if got = append(got, tok.ID); i == 0 && len(got) == 5 {
						return
					}
				}
				if i > 0 && !slices.Equal(got, want) {
					t.Errorf("follower %d: %v, want %v", i, got, want)
				}
			})
		}
		all.Wait()
	})
}
