package tts

import (
	"slices"

	"github.com/lutra-lm/lutra/batcher"
)

// decoder turns one sequence's tokens into deltas.
type decoder struct {
	model    *Model
	text     *text
	logprobs bool
	waiting  []waiting // tokens whose text has not been delivered
}

// waiting is a token and the place in the text where its bytes begin.
type waiting struct {
	token Token
	start int
}

func newDecoder(m *Model, req *Request) *decoder {
	stops := req.Stop
	if req.Prompt.Messages != nil {
		stops = slices.Concat(stops, m.Stops)
	}
	return &decoder{model: m, text: newText(stops), logprobs: req.Sampling.Logprobs}
}

// clone is a decoder that goes on from here on its own.
func (d *decoder) clone() *decoder {
	return &decoder{model: d.model, text: d.text.clone(), logprobs: d.logprobs, waiting: slices.Clone(d.waiting)}
}

// push adds a sampled token. The delta's Finish is set when the choice ends
// with it; a token that ends the model's turn is no part of the answer.
func (d *decoder) push(tok batcher.Token) Delta {
	var out Delta
	ends := tok.Finish == batcher.FinishStop
	if d.logprobs {
		t := d.model.token(tok)
		t.End, t.Hidden = ends, ends || t.Hidden
		d.waiting = append(d.waiting, waiting{t, d.text.seen()})
	}
	if !ends {
		piece := d.model.Tokenizer.Piece(tok.ID)
		if len(piece) == 0 {
			piece = d.model.mark(tok.ID)
		}
		out.Text = d.text.push(piece)
	}
	switch {
	case d.text.stopped:
		out.Finish = FinishStop
	case ends:
		out.Text += d.text.flush()
		out.Finish = FinishStop
	case tok.Finish == batcher.FinishLength:
		out.Text += d.text.flush()
		out.Finish = FinishLength
	}
	// Tokens go with the text they begin in, so that none of a stop string's do;
	// the one that ends the model's turn comes last.
	all := out.Finish != "" && !d.text.stopped
	i := 0
	for i < len(d.waiting) && (all || d.waiting[i].start < d.text.delivered) {
		out.Tokens = append(out.Tokens, d.waiting[i].token)
		i++
	}
	d.waiting = d.waiting[i:]
	return out
}

// token is a sampled token in bytes.
func (m *Model) token(t batcher.Token) Token {
	out := Token{ID: t.ID, Bytes: m.Bytes(t.ID), Logprob: t.Logprob, Known: true, Hidden: m.hidden(t.ID)}
	for _, a := range t.Top {
		out.Top = append(out.Top, Alternative{ID: a.ID, Bytes: m.Bytes(a.ID), Logprob: a.Logprob})
	}
	return out
}
