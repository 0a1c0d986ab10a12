package tts

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/structure"
)

// errStrayed says that tokens were appended that a format does not allow.
var errStrayed = errors.New("tts: the answer has left its format")

// mostSpace bounds the white space between a thought and a structured answer.
const mostSpace = 4 // bytes

// structured is the part of a constraint that a format makes.
type structured struct {
	*structure.Format
	model *Model
	after string  // text behind which it holds, such as the end of a thought; empty: from the beginning
	begun []int32 // what the prompt ends with that belongs to the answer
}

var _ sampling.Preparer = (*constraint)(nil)

// Prepare implements sampling.Preparer: the mask of what follows is found beside the
// model's next step.
func (c *constraint) Prepare(completion []int32) {
	if c.format.Format == nil {
		return
	}
	completion = slices.Clone(completion)
	go func() {
		tokens, free := c.format.answer(completion)
		if free {
			return
		}
		if s, err := c.format.State(tokens); err == nil && s != nil {
			_, _ = c.format.Mask(s)
		}
	}()
}

// answer is the tokens of a completion that its format is for; free: there are none
// yet, and the model may think or write text.
func (s *structured) answer(completion []int32) (tokens []int32, free bool) {
	if s.after == "" {
		return slices.Concat(s.begun, completion), false
	}
	var text []byte
	for i, id := range completion {
		text = append(text, s.model.Bytes(id)...)
		if bytes.HasSuffix(text, []byte(s.after)) {
			rest := completion[i+1:]
			for len(rest) > 0 && len(bytes.TrimSpace(s.model.Bytes(rest[0]))) == 0 {
				rest = rest[1:]
			}
			return rest, false
		}
	}
	return nil, true
}

// allow sets the tokens that a format allows behind a completion.
func (c *constraint) allow(mask []uint64, completion []int32) error {
	s := &c.format
	tokens, free := s.answer(completion)
	if free {
		for id := range int32(c.vocab) {
			mask[id/64] |= 1 << (id % 64)
		}
		for _, id := range c.ends {
			c.forbid(mask, id)
		}
		return nil
	}
	state, err := s.State(tokens)
	if err != nil {
		return err
	}
	if state == nil {
		return errStrayed
	}
	allowed, err := s.Mask(state)
	if err != nil {
		return err
	}
	for w := range min(len(mask), len(allowed)) {
		mask[w] = allowed[w]
	}
	if s.after != "" && len(tokens) == 0 {
		s.allowSpace(mask, completion)
	}
	for _, id := range c.ends {
		if c.forbid(mask, id); state.Accepts() {
			mask[id/64] |= 1 << (id % 64)
		}
	}
	return nil
}

// allowSpace adds the tokens of white space before the format begins.
func (s *structured) allowSpace(mask []uint64, completion []int32) {
	written := 0
	for i := len(completion) - 1; i >= 0 && len(bytes.TrimSpace(s.model.Bytes(completion[i]))) == 0; i-- {
		written += len(s.model.Bytes(completion[i]))
	}
	for _, text := range []string{"\n", "\n\n", " "} {
		if written+len(text) <= mostSpace {
			for _, id := range s.model.spelling(text) {
				mask[id/64] |= 1 << (id % 64)
			}
		}
	}
}

// spelling is the one token that a text is, if there is one.
func (m *Model) spelling(text string) []int32 {
	for id := range int32(m.Tokenizer.Size()) {
		if m.Tokenizer.Plain(id) && string(m.Tokenizer.Piece(id)) == text {
			return []int32{id}
		}
	}
	return nil
}

// checkFormat refuses what a format does not go with.
func (r *Request) checkFormat() error {
	if r.Format == nil {
		return nil
	}
	for name, bad := range map[string]bool{
		"min_tokens": r.MinTokens > 0, "allowed_token_ids": r.Allowed != nil, "ignore_eos": r.Sampling.IgnoreEOS,
		"continue_final_message": r.Prompt.Ending == EndOpen && r.Prompt.Messages != nil,
	} {
		if bad {
			return fmt.Errorf("%w: %s", ErrFormat, name)
		}
	}
	return nil
}
