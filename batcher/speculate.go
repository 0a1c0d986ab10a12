package batcher

import (
	"fmt"
	"strconv"
)

// Speculation is how many tokens of a stream may be computed before they are
// known: a step then computes guesses behind the stream's last token as well,
// and keeps what sampling confirms. Every token is sampled from the logits,
// position and tokens that it would be sampled from otherwise, so they are the
// same tokens, with any parameters.
type Speculation string

// The speculations beside numbers, which mean so many whatever they cost.
const (
	SpeculateAuto Speculation = "auto" // as many as pay, in lanes that the step has begun anyway
	SpeculateOff  Speculation = "off"
)

// draftsMost bounds the guesses a stream has in a step: more than half a tile is seldom right.
const draftsMost = Tile/2 - 1

// limit is the number of guesses a stream, and whether they have to pay.
func (s Speculation) limit() (n int, pays bool, err error) {
	switch s {
	case SpeculateAuto:
		return draftsMost, true, nil
	case SpeculateOff, "":
		return 0, false, nil
	}
	n, err = strconv.Atoi(string(s))
	if err != nil || n < 0 || n > draftsMost {
		return 0, false, fmt.Errorf("batcher: speculation = %q, want auto, off or a number to %d", string(s), draftsMost)
	}
	return n, false, nil
}

// guesses is what the step loop knows of a stream's drafts.
type guesses struct {
	drafter Drafter
	draft   []int32 // for the step under way; its first token is held against what is sampled even if it is not computed
	rate    float64 // how often a guess is right, of late
	judged  int     // guesses that rate is made of
}

const (
	rateAtFirst = 0.3
	rateForget  = 0.15
	worthwhile  = 1.03 // least gain of speed
)

// guess fills s.draft with up to k tokens.
func (e *Engine) guess(s *Sequence, k int) {
	s.draft = s.draft[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.order
	if s.epoch != s.seen || o.kind != wantTokens {
		return
	}
	if k = min(k, o.left-1, e.limit-len(s.tokens)-1, e.opt.Unread-len(s.unread)-1); k < 1 {
		return
	}
	if s.drafter == nil {
		s.drafter, s.rate = e.opt.Drafter(), rateAtFirst
	}
	s.draft = s.drafter.Draft(s.draft, s.tokens, k)
	s.draft = s.draft[:min(len(s.draft), k)]
	for i, id := range s.draft {
		if id < 0 || int(id) >= e.cfg.Vocab {
			s.draft = s.draft[:i]
			break
		}
	}
}

// speculate adds guesses to the planned streams.
func (e *Engine) speculate(l *limits) {
	if e.drafts == 0 {
		return
	}
	n, rows := 0, 0
	for _, p := range e.spans {
		n, rows = n+p.n, rows+p.s.rows(p.n)
	}
	room := l.tokens
	if e.draftsPay {
		room = wholeTiles(n)
	}
	if room = min(room-n, l.rows-rows); room < 1 {
		return
	}
	for i := range e.spans {
		if p := &e.spans[i]; p.n == 1 && p.s.left() == 1 && !p.ridden {
			e.guess(p.s, min(room, e.drafts))
			p.guessed = len(p.s.draft) > 0
		}
	}
	room = e.worth(n, room)
	for ; room > 0; room-- {
		if p, _ := e.likeliest(); p != nil {
			p.draft = p.s.draft[:len(p.draft)+1]
		}
	}
}

// likeliest is the span whose next guess is most likely right, and how likely
// that is; nil when there is none left.
func (e *Engine) likeliest() (best *span, chance float64) {
	for i := range e.spans {
		p := &e.spans[i]
		if !p.guessed || len(p.draft) == len(p.s.draft) {
			continue
		}
		c := p.s.rate
		for range len(p.draft) {
			c *= p.s.rate
		}
		if best == nil || c > chance {
			best, chance = p, c
		}
	}
	return best, chance
}

// worth is how many guesses, of at most room, make a step of n tokens yield
// most for its time.
func (e *Engine) worth(n, room int) int {
	most := 0
	base := float64(n) / e.pace.time(n)
	best, sure := base*worthwhile, float64(n)
	for k := 1; k <= room; k++ {
		p, chance := e.likeliest()
		if p == nil {
			if !e.draftsPay {
				most = k - 1
			}
			break
		}
		p.draft = p.s.draft[:len(p.draft)+1]
		sure += chance
		if !e.draftsPay {
			most = k
		} else if yield := sure / e.pace.hoped(n+k); yield > best {
			best, most = yield, k
		} else if chance < 0.02 {
			break
		}
	}
	for i := range e.spans {
		e.spans[i].draft = nil
	}
	return most
}

// learn notes whether a guess was right. Locked.
func (s *Sequence) learn(right bool) {
	s.judged++
	weight := max(rateForget, 1/float64(s.judged+2))
	s.rate -= weight * s.rate
	if right {
		s.rate += weight
	}
}
