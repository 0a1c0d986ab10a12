package responses

import (
	"bytes"

	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// textTokens finds the tokens of a message's text among all that a model generates. Tokens may come before their text
// is known.
type textTokens struct {
	pending []tts.Token // whose text has not come yet
	thought bool        // a thought was the last that came
}

// take returns the tokens of a text, without tokens of thoughts and calls.
func (t *textTokens) take(d *tts.Text) []report.TokenLogprob {
	for i := range d.Tokens {
		if k := &d.Tokens[i]; !k.Hidden && !k.End {
			t.pending = append(t.pending, *k)
		}
	}
	if d.Text == "" {
		return nil
	}
	var spelt []byte
	for i := range t.pending {
		spelt = append(spelt, t.pending[i].Bytes...)
	}
	find := bytes.Index
	if t.thought { // of which the last may be pending
		find, t.thought = bytes.LastIndex, false
	}
	from, to := find(spelt, []byte(d.Text)), len(spelt)
	if from >= 0 {
		to = from + len(d.Text)
	}
	var list []report.TokenLogprob
	at := 0
	for len(t.pending) > 0 && at < to {
		k := &t.pending[0]
		if at >= from {
			list = append(list, report.NewTokenLogprob(k))
		}
		at += len(k.Bytes)
		t.pending = t.pending[1:]
	}
	return list
}
