package search

import (
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
)

const (
	// partialInterval is the least time between two reports of partial texts.
	partialInterval = 150 * time.Millisecond
	// partialBytes bounds the text of one report; what is left comes with the next.
	partialBytes = 8 << 10
)

// partials are the candidates of one round of decoding. The goroutine that
// extends a candidate updates its entry, the search's own one reports. Texts
// are the candidates' own, not copies: a reader that lags costs no memory.
type partials struct {
	due *time.Timer // of the next report

	mu    sync.Mutex // guards what follows
	beams []*partial
	next  int // the entry with which the next report begins, so that none is left out for good
}

// partial is the entry of one candidate.
type partial struct {
	all    *partials
	now    tts.Partial // but for the text
	text   []byte      // the candidate's whole text; bytes are only ever added to it
	sent   int         // bytes of it that have been reported
	scores int         // that the candidate had when the round began
	news   bool        // there is something to report
}

// begin makes beams the candidates to be reported, numbered from first.
func (p *partials) begin(beams []*beam, first int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beams, p.next = make([]*partial, len(beams)), 0
	for i, b := range beams {
		b.partial = &partial{all: p, now: tts.Partial{Index: first + i, Parent: b.node}, text: b.text, sent: len(b.text), scores: len(b.cand.StepScores)}
		p.beams[i] = b.partial
	}
}

// note records the state of b for reports, if they are wanted.
func (g *grower) note(b *beam) {
	p := b.partial
	if p == nil {
		return
	}
	c, now := b.cand, p.now
	if now.Finish == "" && c.Finish != "" {
		var whole tts.Candidate
		g.read(&whole, string(b.text))
		now.Answer = whole.Answer
	}
	now.Tokens, now.Logprob, now.Finish = len(c.IDs), c.Logprob, c.Finish
	now.Judged, now.Score = len(c.StepScores) > p.scores, c.Score
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.now, p.text, p.news = now, b.text, true
}

// take returns what has not been reported, as far as one report may hold it.
func (p *partials) take() []tts.Partial {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []tts.Partial
	room := partialBytes
	for i := range p.beams {
		at := (p.next + i) % len(p.beams)
		e := p.beams[at]
		if !e.news {
			continue
		}
		one, text := e.now, e.text[e.sent:]
		if len(text) > room {
			for room > 0 && !utf8.RuneStart(text[room]) {
				room--
			}
			text = text[:room]
			one.Finish, one.Answer, one.Judged, one.Score = "", "", false, 0 // come with the last of the text
		}
		one.Text = string(text)
		out = append(out, one)
		e.sent += len(text)
		room -= len(text)
		if e.news = e.sent < len(e.text); e.news || room == 0 {
			p.next = (at + 1) % len(p.beams)
			break
		}
	}
	return out
}

// await returns when one of two channels is closed; either may be nil.
// Meanwhile it reports what the live candidates gain, to those who asked for it.
func (p *reporter) await(live int, done, over <-chan struct{}) error {
	var due <-chan time.Time // nil, which is never, unless reports are wanted
	if p.partials != nil {
		due = p.partials.due.C
	}
	for {
		select {
		case <-done:
			return nil
		case <-over:
			return nil
		case <-due:
		}
		if gained := p.partials.take(); gained != nil {
			now := p.progress(live)
			now.Partial = gained
			if err := p.spent(now); err != nil {
				return err
			}
		}
		p.partials.due.Reset(partialInterval)
	}
}

// meanwhile does work for live candidates under way and reports as await does. It
// ends when the reader leaves.
func (p *reporter) meanwhile(live int, work func() error) error {
	if p.partials == nil {
		return work()
	}
	over := make(chan struct{})
	wait := parallel.Start([]func() error{work}, func(_ int, work func() error) error {
		defer close(over)
		return work()
	})
	if err := p.await(live, nil, over); err != nil {
		p.run.stop()
		_ = wait()
		return err
	}
	return wait()
}
