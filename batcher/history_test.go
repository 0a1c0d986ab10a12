package batcher

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/toy"
)

// client drives one sequence and knows what it must hold.
type client struct {
	s         *Sequence
	tokens    []int32
	prompt    int // of them before the first generated one
	generated bool
	params    sampling.Params
	cancel    context.CancelFunc // ends the operation under way
	busy      bool
}

// history plays random operations of many clients against an engine, step by
// step, and checks every token and, after every step, the KV cache.
type history struct {
	t       *testing.T
	m       *toy.Model
	e       *Engine
	drafter *modelDrafter   // nil: no model drafts
	next    func(n int) int // the source of choices, in [0, n)
	clients []*client
	done    [4]atomic.Int64 // operations completed: generate, fork, logits, scores
	mu      sync.Mutex
	kin     []*client // forks made by operations that have ended
}

// play returns what the engine and the clients counted.
func play(t *testing.T, steps int, next func(n int) int) (stats Stats, done [4]int64) {
	synctest.Test(t, func(t *testing.T) {
		opt := DefaultOptions()
		opt.Sequences, opt.Queue, opt.Context, opt.Unread = 24, 6, 60, 1+next(6)
		opt.StepTokens, opt.StepRows = Tile*(1+next(3)), 4+next(8)
		opt.Speculation = []Speculation{SpeculateOff, "1", "4", "15"}[next(4)]
		m := &toy.Model{Vocab: 40}
		if next(3) == 0 {
			m.States = 1 + next(30)
		}
		if next(2) == 0 {
			m.Logits = looping
		}
		var drafter *modelDrafter
		switch next(6) {
		case 0:
			opt.Drafters = []Drafter{wild(next)}
		case 1:
			opt.Drafters = []Drafter{oracle(m)}
		case 2, 3, 4: // a model that says the same, or mostly not
			small := &toy.Model{Vocab: 40, Logits: m.Logits, States: next(2) * (1 + next(20))}
			if next(3) == 0 {
				small.Logits = looping
			}
			drafter = newModelDrafter(small, small.NewCache(3+next(60), 1+next(9)), nil)
			opt.Drafters = []Drafter{NewLookup(), drafter}[next(2):]
		}
		blockLen := 1 + next(9)
		h := &history{t: t, m: m, e: New(m, m.NewCache(20+next(40), blockLen), opt), drafter: drafter, next: next}
		for range steps {
			for range next(4) {
				h.operate()
				synctest.Wait()
			}
			h.step()
		}
		for _, c := range h.clients {
			c.s.Close()
		}
		synctest.Wait()
		h.clients = append(h.clients, h.kin...)
		for _, c := range h.kin {
			c.s.Close()
		}
		h.step()
		if err := h.e.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		checkEmpty(t, h.e)
		if drafter != nil {
			checkNoReadings(t, drafter)
		}
		time.Sleep(time.Second) // of the bubble's clock: all that was late is known
		stats = h.e.Stats()
		for i := range done {
			done[i] = h.done[i].Load()
		}
	})
	return stats, done
}

func (h *history) step() {
	h.t.Helper()
	st, err := h.e.Step()
	if err != nil {
		h.t.Fatal(err)
	}
	if slices.ContainsFunc(h.e.loop.admission.active, func(s *Sequence) bool { return s.task.constraint.held() }) {
		time.Sleep(20 * time.Millisecond) // of the bubble's clock
	} else if st.Tokens == 0 && st.Preempted == 0 && len(h.e.loop.admission.active)+len(h.e.loop.admission.waiting) > 0 {
		h.t.Fatalf("no progress with %d active and %d waiting: %+v", len(h.e.loop.admission.active), len(h.e.loop.admission.waiting), st)
	}
	if st.Tokens > h.e.setup.opt.StepTokens || st.Rows > h.e.setup.opt.StepRows {
		h.t.Fatalf("step of %d tokens, %d rows; limits %d, %d", st.Tokens, st.Rows, h.e.setup.opt.StepTokens, h.e.setup.opt.StepRows)
	}
	var held []*kv.Sequence
	for s := range h.e.box.open {
		if (s.task.kv != nil) != (s.task.list == active || s.task.list == idle) || s.task.kv != nil && s.task.kv.Len() != s.task.demand.Computed {
			h.t.Fatalf("sequence in list %d with blocks %t, %d positions", s.task.list, s.task.kv != nil, s.task.demand.Computed)
		}
		if s.task.kv != nil {
			held = append(held, s.task.kv)
		}
	}
	if err := h.e.loop.kv.Check(held...); err != nil {
		h.t.Fatal(err)
	}
	if h.drafter != nil {
		checkReadings(h.t, h.e, h.drafter)
	}
	synctest.Wait()
}

// operate starts one operation.
func (h *history) operate() {
	h.clients = append(h.clients, h.kin...)
	h.kin = nil
	if len(h.clients) == 0 || h.next(8) == 0 {
		h.open()
		return
	}
	i := h.next(len(h.clients))
	c := h.clients[i]
	if c.busy {
		if h.next(4) == 0 {
			c.cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	c.cancel, c.busy = cancel, true
	choice, n, seed := h.next(16), h.next(12), h.next(1<<16)
	if choice == 9 || choice == 10 {
		cancel()
		h.generateEqual(c, n+1)
		return
	}
	if choice == 0 {
		c.s.Close()
		h.clients = slices.Delete(h.clients, i, i+1)
		cancel()
		return
	}
	go func() {
		defer cancel()
		switch {
		case choice < 4:
			h.add(c, n, seed)
		case choice < 6:
			h.fork(ctx, c, n/4)
		case choice < 8:
			h.logits(ctx, c)
		case choice < 9:
			h.scores(ctx, c)
		default:
			h.generate(c, c.s.Generate(ctx, c.params), n+1)
		}
		c.busy = false
	}()
}

// open starts a sequence with a prompt that others may share.
func (h *history) open() {
	prompt := make([]int32, 1+h.next(min(40, h.e.setup.bounds.limit)))
	stem := h.next(3)
	for i := range prompt {
		prompt[i] = int32((i*7 + stem) % 40)
	}
	prompt[len(prompt)-1] = int32(h.next(40))
	open := h.e.Open
	if h.next(3) == 0 {
		open = h.e.OpenBackground
	}
	s, err := open(h.t.Context(), prompt)
	if errors.Is(err, ErrBusy) {
		return
	}
	if err != nil {
		h.t.Error(err)
		return
	}
	h.clients = append(h.clients, &client{s: s, tokens: prompt, prompt: len(prompt), params: h.params()})
}

func (h *history) params() sampling.Params {
	p := sampling.Params{Seed: uint64(h.next(100)), Candidate: h.next(4)}
	if h.next(2) == 0 {
		p.Temperature = 0.9
	}
	if h.next(3) == 0 {
		p.TopK = 1 + h.next(10)
	}
	if h.next(3) == 0 {
		p.RepetitionPenalty, p.PresencePenalty = 1.3, 0.5
	}
	if h.next(3) == 0 {
		p.Constraint = newMaze(&labyrinth{seed: uint64(h.next(3)), vocab: 40, slow: h.next(2) == 0})
	}
	return p
}

// tolerable reports whether an error is one that the client brought about.
func (h *history) tolerable(c *client, err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrClosed) ||
		errors.Is(err, ErrBusy) || errors.Is(err, ErrTooLong) && len(c.tokens) == h.e.setup.bounds.limit
}

func (h *history) add(c *client, n, seed int) {
	extra := make([]int32, n)
	for i := range extra {
		extra[i] = int32((seed + i*i) % 40)
	}
	if len(c.tokens)+n > h.e.setup.bounds.limit {
		return
	}
	c.s.Append(extra...)
	c.tokens = append(c.tokens, extra...)
	if !c.generated {
		c.prompt = len(c.tokens)
	}
}

func (h *history) generate(c *client, run iter.Seq2[sampling.Token, error], n int) {
	var s sampling.Sampler
	for tok, err := range run {
		if err != nil {
			if !h.tolerable(c, err) {
				h.t.Errorf("Generate: %v", err)
			}
			return
		}
		params, forced := behind(c.params, c.tokens[c.prompt:], 40)
		d := sampling.Draw{Row: h.m.Row(c.tokens), Params: params, ID: forced, Position: len(c.tokens), Tokens: c.tokens, Prompt: c.prompt}
		s.Run(&d)
		if tok.ID != d.Token.ID {
			h.t.Errorf("token %d at position %d, want %d", tok.ID, len(c.tokens), d.Token.ID)
		}
		c.tokens, c.generated = append(c.tokens, tok.ID), true
		if n--; n == 0 {
			h.done[0].Add(1)
			return
		}
	}
}

// generateEqual lets c and those that hold the same tokens go on together.
func (h *history) generateEqual(c *client, n int) {
	ctx, cancel := context.WithCancel(h.t.Context())
	var all []*client
	var seqs []*Sequence
	var params []sampling.Params
	for _, k := range h.clients {
		if (!k.busy || k == c) && slices.Equal(k.tokens, c.tokens) {
			k.cancel, k.busy = cancel, true
			all, seqs, params = append(all, k), append(seqs, k.s), append(params, k.params)
		}
	}
	var running sync.WaitGroup
	for i, run := range GenerateAll(ctx, seqs, params) {
		running.Go(func() {
			h.generate(all[i], run, n)
			all[i].busy = false
		})
	}
	go func() {
		running.Wait()
		cancel()
	}()
}

func (h *history) logits(ctx context.Context, c *client) {
	row, err := c.s.Logits(ctx)
	if err != nil {
		if !h.tolerable(c, err) {
			h.t.Errorf("Logits: %v", err)
		}
		return
	}
	h.done[2].Add(1)
	if want := h.m.Row(c.tokens); !slices.Equal(row, want) {
		h.t.Errorf("Logits = %v, want %v", row, want)
	}
}

func (h *history) scores(ctx context.Context, c *client) {
	got, err := c.s.PromptLogprobs(ctx, 1)
	if err != nil {
		if !h.tolerable(c, err) {
			h.t.Errorf("PromptLogprobs: %v", err)
		}
		return
	}
	h.done[3].Add(1)
	if len(got) != len(c.tokens)-1 {
		h.t.Errorf("PromptLogprobs gave %d tokens of %d", len(got), len(c.tokens))
		return
	}
	var s sampling.Sampler
	for i, tok := range got {
		d := sampling.Draw{Row: h.m.Row(c.tokens[:i+1]), Params: sampling.Params{TopLogprobs: 1}, ID: c.tokens[i+1]}
		s.Run(&d)
		if tok.ID != d.Token.ID || tok.Logprob != d.Token.Logprob || tok.Top[0] != d.Token.Top[0] {
			h.t.Errorf("PromptLogprobs[%d] = %v, want %v", i, tok, d.Token)
		}
	}
}

func (h *history) fork(ctx context.Context, c *client, n int) {
	forks, err := c.s.Fork(h.t.Context(), n)
	if err != nil {
		if !h.tolerable(c, err) {
			h.t.Errorf("Fork: %v", err)
		}
		return
	}
	h.done[1].Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range forks {
		p := c.params
		p.Candidate += i + 1
		h.kin = append(h.kin, &client{s: s, tokens: slices.Clone(c.tokens), prompt: c.prompt, generated: c.generated, params: p})
	}
}

func TestRandomHistoriesGiveTheRightTokensAndKeepTheCacheSound(t *testing.T) {
	var sum Stats
	var ended [4]int64
	for seed := range uint64(90) {
		r := rand.New(rand.NewPCG(seed, 7))
		st, done := play(t, 150, r.IntN)
		for i, n := range done {
			ended[i] += n
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		sum.Preemptions += st.Preemptions
		sum.Evictions += st.Evictions
		for k := range DraftKinds {
			sum.DraftTokens[k] += st.DraftTokens[k]
			sum.DraftAccepted[k] += st.DraftAccepted[k]
		}
		sum.PrefixHits += st.PrefixHits
		sum.SavedTokens += st.SavedTokens
		sum.GeneratedTokens += st.GeneratedTokens
		sum.ForcedTokens += st.ForcedTokens
	}
	if slices.Min(ended[:]) < 100 {
		t.Errorf("operations completed (generate, fork, logits, scores): %v", ended)
	}
	if sum.Preemptions < 15 || sum.Evictions < 50 || sum.PrefixHits < 50 || sum.SavedTokens < 250 || sum.GeneratedTokens < 5000 || sum.ForcedTokens < 500 ||
		sum.DraftAccepted[DraftLookup] < 300 || sum.DraftTokens[DraftLookup]-sum.DraftAccepted[DraftLookup] < 300 ||
		sum.DraftAccepted[DraftModel] < 500 || sum.DraftTokens[DraftModel]-sum.DraftAccepted[DraftModel] < 500 {
		t.Errorf("the histories reach too little: %+v", sum)
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte("any bytes are a history"))
	f.Fuzz(func(t *testing.T, data []byte) {
		play(t, 3+len(data)/8, func(n int) int {
			if len(data) == 0 {
				return 0
			}
			v := int(data[0])
			if n > 256 && len(data) > 1 {
				v, data = v<<8|int(data[1]), data[1:]
			}
			data = data[1:]
			return v % n
		})
	})
}
