package batcher

import (
	"fmt"
	"strconv"

	"github.com/lutra-lm/lutra/batcher/schedule"
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
		return 0, false, fmt.Errorf("%.40q is none of auto, off and the numbers to %d", string(s), draftsMost)
	}
	return n, false, nil
}

// UnmarshalText reads a speculation as configurations write it.
func (s *Speculation) UnmarshalText(text []byte) error {
	*s = Speculation(text)
	_, _, err := s.limit()
	return err
}

// guesses is what the step loop knows of a stream's drafts.
type guesses struct {
	text []int32 // a copy of the stream's tokens
	by   []guess // one a source
}

// guess is what a source says. Its first token is held against what is sampled
// even if it is not computed.
type guess struct {
	Guess
	rate   float64 // how often it is right, of late
	judged int     // guesses that rate is made of
	begun  bool    // it has been decided that the text is worth reading
}

// forgetGuesses gives back what drafters keep of s.
func (s *Sequence) forgetGuesses() {
	for i := range s.by {
		if g := &s.by[i]; g.Notes != nil {
			g.Notes.Close()
			g.Notes, g.begun = nil, false
		}
	}
}

// ask prepares to ask for up to k guesses, if there can be any.
func (e *Engine) ask(s *Sequence, k int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.order
	if s.epoch != s.seen || o.kind != wantTokens {
		return false
	}
	if k = min(k, o.left-1, e.limit-len(s.tokens)-1, e.opt.Unread-len(s.unread)-1); k < 1 {
		return false
	}
	if s.by == nil {
		s.by = make([]guess, len(e.sources))
		for i := range s.by {
			s.by[i].rate = e.sources[i].rate
		}
	}
	s.text = append(s.text[:0], s.tokens...)
	for i := range s.by {
		g := &s.by[i]
		g.Text, g.Prompt, g.Params, g.Most, g.Tokens = s.text, s.prompt, o.params, k, g.Tokens[:0]
	}
	return true
}

// speculate adds guesses to the planned streams.
func (e *Engine) speculate(l *schedule.Limits) {
	if e.drafts == 0 {
		return
	}
	for i := range e.sources {
		e.sources[i].price = 0
	}
	n, rows := 0, 0
	for _, p := range e.spans {
		n, rows = n+p.n, rows+p.s.want.Rows(p.n)
	}
	room := l.Tokens
	if e.draftsPay {
		room = schedule.WholeTiles(n)
	}
	if room = min(room-n, l.Rows-rows); room < 1 {
		return
	}
	for i := range e.spans {
		if p := &e.spans[i]; p.n == 1 && p.s.want.Left() == 1 && !p.ridden {
			p.asked = e.ask(p.s, min(room, e.drafts))
		}
	}
	for by := range e.sources {
		e.draft(by, n, room)
	}
	e.bets = e.bets[:0]
	for i := range e.spans {
		if p := &e.spans[i]; p.most > 0 {
			e.bets = append(e.bets, bet{span: i, rate: p.s.by[p.by].rate, most: p.most})
		}
	}
	e.wager(n, room, worthwhile, free)
	for _, b := range e.bets {
		p := &e.spans[b.span]
		p.draft = p.s.by[p.by].Tokens[:b.taken]
	}
}
