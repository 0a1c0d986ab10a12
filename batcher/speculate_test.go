package batcher

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// looping makes text that repeats itself: logits depend on the last token, and
// a little on the position.
func looping(tokens []int32, row []float32) {
	last := int(tokens[len(tokens)-1])
	for i := range row {
		row[i] = float32((i*7+last*13)%len(row)) / 4
		if i == len(tokens)%len(row) {
			row[i] += 3
		}
	}
}

// guesser drafts what a function says.
type guesser func(tokens []int32, k int) []int32

func (guesser) Kind() DraftKind        { return DraftLookup }
func (guesser) Price([]*Guess) float64 { return 0 }
func (f guesser) Draft(guesses []*Guess, _ float64) error {
	for _, g := range guesses {
		g.Tokens = append(g.Tokens, f(g.Text, g.Most)...)
	}
	return nil
}

// wild drafts anything, tokens that do not exist included.
func wild(n func(int) int) Drafter {
	return guesser(func(_ []int32, k int) (guess []int32) {
		for range n(k + 3) {
			guess = append(guess, int32(n(43)-1))
		}
		return guess
	})
}

// oracle drafts what a greedy model says, but for every fifth token.
func oracle(m *toy.Model) Drafter {
	return guesser(func(tokens []int32, k int) (guess []int32) {
		all := slices.Clone(tokens)
		for range k {
			id := int32(vector.Argmax(m.Row(all)))
			if len(all)%5 == 0 {
				id = 0
			}
			all, guess = append(all, id), append(guess, id)
		}
		return guess
	})
}

func TestSpeculationChangesNoToken(t *testing.T) {
	for i, p := range everyOption {
		p.MaxTokens, p.Seed = 40, uint64(i)
		m := &toy.Model{Logits: looping}
		prompt := []int32{1, 2, 3, 4, 1, 2, 3}
		var want []sampling.Token
		for _, how := range []Speculation{SpeculateOff, "1", "3", "15"} {
			for _, drafters := range [][]Drafter{nil, {oracle(m)}} {
				opt := DefaultOptions()
				opt.Speculation, opt.Drafters, opt.Unread = how, drafters, 7
				start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
					got := generated(t, r.open(prompt...), p)
					if want == nil {
						want = got
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%+v with speculation %s: %v, want %v", p, how, got, want)
					}
				})
			}
		}
	}
}

// generated is all that s generates with p, logprobs included.
func generated(t *testing.T, s *Sequence, p sampling.Params) (tokens []sampling.Token) {
	t.Helper()
	defer s.Close()
	for tok, err := range s.Generate(t.Context(), p) {
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, tok)
	}
	return tokens
}

func TestSpeculationEndsWhereGenerationEnds(t *testing.T) {
	m := &toy.Model{}
	all := expect(m, []int32{5, 6}, 30, sampling.Params{})
	opt := DefaultOptions()
	opt.Speculation, opt.Drafters = "15", []Drafter{oracle(m)}
	start(t, m, 8, 4, opt, func(t *testing.T, r rig) {
		at := slices.Index(all, all[7])
		for _, c := range []struct {
			p      sampling.Params
			n      int
			finish sampling.Finish
		}{
			{sampling.Params{Stop: []int32{all[7]}}, at + 1, sampling.FinishStop},
			{sampling.Params{MaxTokens: 8}, 8, sampling.FinishLength},
			{sampling.Params{}, 30, sampling.FinishLength}, // the pool is full
		} {
			s := r.open(5, 6)
			var got []int32
			var last sampling.Token
			for tok, err := range s.Generate(t.Context(), c.p) {
				if err != nil {
					t.Fatal(err)
				}
				got, last = append(got, tok.ID), tok
			}
			if !slices.Equal(got, all[:c.n]) || last.Finish != c.finish {
				t.Errorf("%+v: %v, finish %d; want %v, %d", c.p, got, last.Finish, all[:c.n], c.finish)
			}
			s.Close()
		}
	})
}

// TestSpeculationPaysOrIsOff runs a stream on machines whose steps take a time
// of their own, with texts that can be guessed and that cannot.
func TestSpeculationPaysOrIsOff(t *testing.T) {
	sweep.NoRace(t)
	for _, c := range []struct {
		name    string
		perStep time.Duration
		perRow  time.Duration
		logits  func([]int32, []float32)
		lo, hi  float64 // times as fast as without
	}{
		{"reading the weights takes the time, text repeats", 20 * time.Millisecond, time.Millisecond, looping, 2, 16},
		{"each row takes its time, text repeats", 0, 10 * time.Millisecond, looping, 0.97, 1.03},
		{"text does not repeat", 20 * time.Millisecond, 4 * time.Millisecond, nil, 0.97, 1.1},
	} {
		speed := func(how Speculation) (tokens float64) {
			synctest.Test(t, func(t *testing.T) {
				m := &toy.Model{Logits: c.logits, Before: func(b *models.Batch) error {
					time.Sleep(c.perStep + time.Duration(len(b.Tokens))*c.perRow)
					return nil
				}}
				opt := DefaultOptions()
				opt.Speculation = how
				e := New(m, m.NewCache(256, 16), opt)
				s, err := e.Open(t.Context(), counting(50))
				if err != nil {
					t.Fatal(err)
				}
				go func() { _ = e.Run(t.Context()) }()
				collect(t, s, sampling.Params{MaxTokens: 300}) // until the machine is known
				begin := time.Now()
				n := len(collect(t, s, sampling.Params{MaxTokens: 600}))
				tokens = float64(n) / time.Since(begin).Seconds()
			})
			return tokens
		}
		if got := speed(SpeculateAuto) / speed(SpeculateOff); got < c.lo || got > c.hi {
			t.Errorf("%s: %.2f times as fast with speculation, want %v to %v", c.name, got, c.lo, c.hi)
		}
	}
}

func TestLookupContinuesTheLongestContextSeenBefore(t *testing.T) {
	for _, c := range []struct {
		tokens []int32
		k      int
		want   []int32
	}{
		{[]int32{1, 2, 3}, 3, nil},
		{[]int32{1, 2, 3, 4, 5, 1, 2}, 3, []int32{3, 4, 5}},
		{[]int32{1, 2, 3, 4, 5, 1, 2}, 9, []int32{3, 4, 5, 1, 2, 3, 4, 5, 1}},
		{[]int32{1, 2, 3, 9, 8, 2, 3, 4, 7, 1, 2, 3}, 1, []int32{9}}, // three tokens beat the later two
		{[]int32{8, 2, 3, 4, 8, 2, 3, 5, 9, 2, 3}, 1, []int32{5}},    // the last of equals
		{[]int32{6, 6, 6, 6, 6, 6}, 4, []int32{6, 6, 6, 6}},          // overlapping itself
	} {
		if got := new(lookup).draft(nil, c.tokens, c.k); !slices.Equal(got, c.want) {
			t.Errorf("Draft(%v, %d) = %v, want %v", c.tokens, c.k, got, c.want)
		}
		d := new(lookup) // token by token it knows the same
		var got []int32
		for n := range c.tokens {
			got = d.draft(nil, c.tokens[:n+1], c.k)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Draft(%v, %d) token by token = %v, want %v", c.tokens, c.k, got, c.want)
		}
	}
}

func FuzzLookup(f *testing.F) {
	f.Add([]byte("abcabcabd"), []byte{1, 5, 3, 200})
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		d := new(lookup)
		var tokens []int32
		for i, b := range text {
			tokens = append(tokens, int32(b%8))
			if len(cuts) > 0 && i%7 == 6 { // callers cut and go on
				tokens = tokens[:len(tokens)*int(cuts[0])/255]
				cuts = cuts[1:]
			}
			got := d.draft(nil, tokens, 5)
			if len(got) == 0 {
				continue
			}
			n := len(tokens)
			known := false
			for at := shortContext; at < n && !known; at++ {
				known = slices.Equal(tokens[at-shortContext:at], tokens[n-shortContext:]) && tokens[at] == got[0]
			}
			if len(got) != 5 || !known {
				t.Fatalf("Draft(%v) = %v", tokens, got)
			}
		}
	})
}

func TestSpeculationOptions(t *testing.T) {
	for how, ok := range map[Speculation]bool{"auto": true, "off": true, "": true, "0": true, "15": true, "16": false, "-1": false, "much": false} {
		opt := DefaultOptions()
		opt.Speculation = how
		if err := opt.Validate(); (err == nil) != ok {
			t.Errorf("speculation %q: %v", how, err)
		}
	}
}

// TestADrafterThatCostsNothingIsNeverInDebt lets one that has nothing to say for
// long take some time for it nevertheless.
func TestADrafterThatCostsNothingIsNeverInDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clocked(20*time.Millisecond, time.Millisecond, looping)
		asked := 0
		opt := DefaultOptions()
		opt.Drafters = []Drafter{guesser(func(tokens []int32, k int) []int32 {
			time.Sleep(time.Millisecond)
			asked++
			return nil
		})}
		e := New(m, m.NewCache(256, 16), opt)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		for range 10 {
			s, err := e.Open(ctx, counting(5))
			if err != nil {
				t.Fatal(err)
			}
			collect(t, s, sampling.Params{MaxTokens: 100})
			s.Close()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if asked < 950 {
			t.Errorf("asked %d times in 1000 tokens", asked)
		}
	})
}
