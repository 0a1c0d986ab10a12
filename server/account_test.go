package server

import (
	"testing"
	"time"

	"github.com/lutra-lm/lutra/tts"
)

func TestTimesOfTokensAreTheEnginesHoweverLateTheyAreRead(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	a := &account{tokens: make([]int, 2)}
	a.Start = start
	for choice := range 2 { // both choices' tokens are read an hour late, at once
		a.note(tts.Event{Choice: choice, What: tts.Text{Text: "Hi", Sampled: 3}})
	}
	a.Usage.Completion = 6
	a.note(tts.Event{Choice: 0, What: tts.End{Timing: tts.Timing{First: at(7), Last: at(40)}}})
	a.note(tts.Event{Choice: 1, What: tts.End{Timing: tts.Timing{First: at(5), Last: at(30)}}})
	a.note(tts.Event{Choice: 1, What: tts.End{}}) // nobody knows
	if ttft, tpot := a.First.Sub(start), a.TPOT(); ttft != 5*time.Millisecond || tpot != 7*time.Millisecond {
		t.Errorf("time to the first token %v and %v for each further one, want 5ms and (40-5)/5 ms", ttft, tpot)
	}

	s := &account{tokens: make([]int, 1), searched: true}
	s.note(tts.Event{What: tts.Text{Text: "Hi"}})
	read := s.First
	s.note(tts.Event{What: tts.End{Timing: tts.Timing{First: at(7), Last: at(40)}}})
	if !s.First.Equal(read) {
		t.Error("the first token of a search is said to come before its reader could have it")
	}
}
