package batcher

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// beside generates with s and with n spare forks of it, and returns the tokens of all, those
// of s first, and the errors of the forks.
func beside(t *testing.T, s *Sequence, n, length int) (ids [][]int32, errs []error) {
	t.Helper()
	spare, err := s.ForkSpare(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	seqs, params := append([]*Sequence{s}, spare...), []sampling.Params{}
	for i := range seqs {
		params = append(params, sampling.Params{Temperature: 1, Seed: 3, Candidate: i, MaxTokens: length})
	}
	ids, errs = make([][]int32, n+1), make([]error, n+1)
	var all sync.WaitGroup
	for i, run := range GenerateAll(t.Context(), seqs, params) {
		all.Go(func() {
			for tok, err := range run {
				if errs[i] = err; err == nil {
					ids[i] = append(ids[i], tok.ID)
				}
			}
			seqs[i].Close()
		})
	}
	all.Wait()
	return ids, errs
}

func TestSpareSequencesFillStepsAsFarAsTheseStayShort(t *testing.T) {
	const length = 30
	for _, c := range []struct {
		what  string
		token time.Duration // that each token of a step takes, beside 10 ms
		fills bool
	}{
		{"where lanes cost nothing", 0, true},
		{"where lanes cost more than the rest", 30 * time.Millisecond, false},
	} {
		m := &toy.Model{}
		m.Before = func(b *models.Batch) error {
			time.Sleep(10*time.Millisecond + time.Duration(len(b.Tokens))*c.token)
			return nil
		}
		start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
			warm := r.open(counting(3)...)
			collect(t, warm, sampling.Params{MaxTokens: 5})
			warm.Close()
			s := r.open(counting(10)...)
			ids, errs := beside(t, s, 1, length)
			if want := expect(m, counting(10), length, sampling.Params{Temperature: 1, Seed: 3}); !slices.Equal(ids[0], want) || errs[0] != nil {
				t.Errorf("%s, the sequence itself gives %v, %v, want %v", c.what, ids[0], errs[0], want)
			}
			if want := expect(m, counting(10), length, sampling.Params{Temperature: 1, Seed: 3, Candidate: 1}); !slices.Equal(ids[1], want) || errs[1] != nil {
				t.Errorf("%s, its fork gives %v, %v, want %v", c.what, ids[1], errs[1], want)
			}
			st := r.Stats()
			steps := st.Steps // side by side one step a token does for both
			if side := steps < 2*length; side != c.fills || st.SpareDropped != 0 || st.SpareTokens == 0 {
				t.Errorf("%s, it took %d steps for %d tokens, %d dropped", c.what, steps, 2*length, st.SpareDropped)
			}
		})
	}
}

func TestSpareSequencesGiveWayToOthersThatWantTheirBlocks(t *testing.T) {
	const length = 40
	m := &toy.Model{}
	m.Before = func(*models.Batch) error { time.Sleep(10 * time.Millisecond); return nil }
	start(t, m, 40, 4, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(counting(10)...)
		var all sync.WaitGroup
		all.Go(func() {
			time.Sleep(100 * time.Millisecond) // the others have begun
			other := r.open(counting(100)...)
			if got := collect(t, other, sampling.Params{MaxTokens: 3}); len(got) != 3 {
				t.Errorf("the other request got %v", got)
			}
			other.Close()
		})
		ids, errs := beside(t, s, 3, length)
		all.Wait()
		if len(ids[0]) != length || errs[0] != nil {
			t.Errorf("the sequence itself gives %v, %v", ids[0], errs[0])
		}
		for i, err := range errs[1:] {
			if !errors.Is(err, ErrDropped) {
				t.Errorf("spare fork %d of %d tokens ended with %v, want ErrDropped", i, len(ids[i+1]), err)
			}
		}
		if st := r.Stats(); st.SpareDropped != 3 || st.Preemptions != 0 {
			t.Errorf("%d dropped, %d preempted", st.SpareDropped, st.Preemptions)
		}
	})
}

func TestNoSequenceFollowsASpareOne(t *testing.T) {
	m := &toy.Model{}
	m.Before = func(*models.Batch) error { time.Sleep(10 * time.Millisecond); return nil }
	opt := DefaultOptions()
	opt.SpareSlowdown = 1 // no step may become longer
	start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
		var all sync.WaitGroup
		first := r.open(counting(10)...)
		all.Go(func() { beside(t, first, 2, 20) })
		p := sampling.Params{Temperature: 1, Seed: 3, Candidate: 1, MaxTokens: 20} // what a spare one says
		second := r.open(counting(10)...)
		if got, want := collect(t, second, p), expect(m, counting(10), 20, p); !slices.Equal(got, want) {
			t.Errorf("it gives %v, want %v", got, want)
		}
		second.Close()
		all.Wait()
	})
}
