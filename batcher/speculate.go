package batcher

import (
	"fmt"
	"strconv"
)

// Speculation is how many tokens of a stream may be computed before they are
// known: a step then computes guesses behind the stream's last token as well,
// and keeps what sampling confirms. Every token is sampled from the logits,
// position and tokens that it would be sampled from otherwise, so they are the
// same tokens, with any parameters. Models with recurrent layers do without.
type Speculation string

// The speculations that are not numbers. A number means so many, whatever they cost.
const (
	SpeculateAuto Speculation = "auto" // as many as make it faster, in lanes that the step has begun anyway
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
type drafts struct {
	text []int32 // a copy of the stream's tokens
	by   []guess // one a drafter
}

// guess is one drafter's guess. Its first token is compared with the sampled one
// even if it is not computed.
type guess struct {
	Guess
	rate   float64 // how often it has been right of late
	judged int     // guesses that rate is made of
	begun  bool    // the drafter may read the text
}

// forgetGuesses gives back what drafters keep of s.
func (s *Sequence) forgetGuesses() {
	for i := range s.task.drafts.by {
		if g := &s.task.drafts.by[i]; g.Notes != nil {
			g.Notes.Close()
			g.Notes, g.begun = nil, false
		}
	}
}
