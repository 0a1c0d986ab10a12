package tts

import (
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/text"
)

// Decoder turns one sequence's tokens into text.
type Decoder struct {
	*Request
	model   *Model
	text    *text.Stream
	repeats repeats
	tokens  int       // so far
	waiting []waiting // tokens whose text has not been delivered
}

// waiting is a token and the place in the text where its bytes begin.
type waiting struct {
	token Token
	start int
}

// NewDecoder returns the decoder of a sequence that answers req.
func NewDecoder(m *Model, req *Request) *Decoder {
	cut, kept := req.Stop, []string(nil)
	if req.KeepStop {
		cut, kept = nil, req.Stop
	}
	return &Decoder{Request: req, model: m, repeats: newRepeats(req.Repetition), text: text.New(slices.Concat(cut, req.ChatStops(m)), kept)}
}

// Clone returns a decoder that goes on from here on its own.
func (d *Decoder) Clone() *Decoder {
	c := *d
	c.text, c.waiting, c.repeats = d.text.Clone(), slices.Clone(d.waiting), d.repeats.clone()
	return &c
}

// Push adds a sampled token. end has a Finish when the choice ends with it; a token that
// ends the model's turn is no part of the answer.
func (d *Decoder) Push(tok sampling.Token) (out Text, end End) {
	d.tokens++
	out.Sampled = 1
	ends := tok.Finish == sampling.FinishStop
	repeated := d.repeats.push(tok.ID) && d.tokens >= d.MinTokens
	if d.Sampling.Logprobs {
		t := tokenOf(d.model, tok)
		t.End = ends
		t.Hidden = ends && !d.KeepStop || t.Hidden && !d.Special
		d.waiting = append(d.waiting, waiting{t, d.text.Seen()})
	}
	if !ends || d.KeepStop {
		out.Text = d.text.Push(d.piece(tok.ID), d.tokens > d.MinTokens)
	}
	switch {
	case d.text.Stopped:
		end.Finish, end.Stop = FinishStop, d.text.Stop
	case ends:
		out.Text += d.text.Flush()
		end.Finish = FinishStop
	case tok.Finish == sampling.FinishLength:
		out.Text += d.text.Flush()
		end.Finish = FinishLength
	case repeated:
		out.Text += d.text.Flush()
		end.Finish = FinishRepetition
	}
	// Tokens go with the text they begin in, so that none of a stop string's do;
	// the one that ends the model's turn comes last.
	out.Last = end.Finish != ""
	all := out.Last && !d.text.Stopped
	i := 0
	for i < len(d.waiting) && (all || d.waiting[i].start < d.text.Delivered) {
		out.Tokens = append(out.Tokens, d.waiting[i].token)
		i++
	}
	d.waiting = d.waiting[i:]
	return out, end
}

// piece returns what a token adds to the text.
func (d *Decoder) piece(id int32) []byte {
	piece := d.model.Tokenizer.Piece(id)
	switch {
	case len(piece) > 0:
		return piece
	case d.Special:
		return d.model.Bytes(id)
	}
	if name := d.model.Tokenizer.Token(id); slices.Contains(d.Marks, strings.TrimRight(name, "\n")) {
		return []byte(name)
	}
	return d.model.Mark(id)
}

// tokenOf returns a sampled token in bytes.
func tokenOf(m *Model, t sampling.Token) Token {
	out := Token{ID: t.ID, Bytes: m.Bytes(t.ID), Logprob: t.Logprob, Certainty: t.Certainty, Rank: t.Rank, Known: true, Hidden: m.Hidden(t.ID)}
	for _, a := range t.Top {
		out.Top = append(out.Top, Alternative{ID: a.ID, Bytes: m.Bytes(a.ID), Logprob: a.Logprob})
	}
	return out
}
