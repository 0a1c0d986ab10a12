package batcher

import (
	"fmt"
	"strconv"

	"github.com/lutra-lm/lutra/batcher/schedule"
)

// Speculation says how many tokens of a stream may be computed before they are known. A step then computes guesses
// after the stream's last token as well, and keeps what sampling confirms. Every token is sampled from the logits,
// position and tokens that it would be sampled from otherwise, so the tokens are the same with any parameters.
type Speculation string

// The speculations that are not numbers. A number n means n tokens, whatever they cost.
const (
	SpeculateAuto Speculation = "auto" // as many as make it faster, in lanes that the step has begun anyway
	SpeculateOff  Speculation = "off"
)

// draftsMost bounds the guesses a stream has in a step: more than half a tile is seldom right.
const draftsMost = schedule.Tile/2 - 1

// GuessesMost bounds the guesses of a step whose model has recurrent layers: it keeps what undoes them.
const GuessesMost = schedule.Tile

// limit returns the number of guesses a stream, and whether they have to pay.
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
