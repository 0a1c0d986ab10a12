package ttstest

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
)

// Flat is an event, field by field.
type Flat struct {
	Choice    int
	Opening   tts.Opening
	Text      string
	Reasoning string
	Tokens    []tts.Token
	Finish    tts.Finish
	Usage     tts.Usage
	Progress  *tts.Progress
	Outcome   *tts.Outcome
}

// Flatten reads an event.
func Flatten(e tts.Event) Flat {
	t := Flat{Choice: e.Choice}
	t.Usage.Count(e)
	switch w := e.What.(type) {
	case tts.Opening:
		t.Opening = w
	case tts.Text:
		t.Text, t.Tokens = w.Text, w.Tokens
	case tts.Reasoning:
		t.Reasoning = string(w)
	case tts.End:
		t.Finish = w.Finish
	case *tts.Progress:
		t.Progress = w
	case *tts.Outcome:
		t.Outcome = w
	}
	return t
}

// Says makes a toy model that follows a prompt of the given length with text
// and ends its turn.
func Says(t testing.TB, prompt []int32, text string) *toy.Model {
	tok := Words(t)
	end, _ := tok.EOS()
	reply := append(tok.Encode(nil, text, tokenizer.Options{ParseSpecial: true}), end)
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		if i := len(tokens) - len(prompt); i >= 0 && i < len(reply) {
			row[reply[i]] = 50
		}
	}}
}

// Result is a run's events put together.
type Result struct {
	Text   []string
	Tokens [][]tts.Token
	Finish []tts.Finish
	Usage  tts.Usage
}

// Collect puts the events of a run of n choices together.
func Collect(t testing.TB, n int, events iter.Seq2[tts.Event, error]) (r Result) {
	t.Helper()
	r.Text, r.Tokens, r.Finish = make([]string, n), make([][]tts.Token, n), make([]tts.Finish, n)
	first := true
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		d := Flatten(e)
		if first != (len(d.Opening.Prompt) > 0) {
			t.Errorf("event %+v, want an opening at the beginning and no other", e)
		}
		first = false
		if r.Finish[d.Choice] != "" && d.Text+string(d.Finish) != "" {
			t.Errorf("choice %d goes on after its end: %+v", d.Choice, d)
		}
		r.Text[d.Choice] += d.Text
		r.Tokens[d.Choice] = append(r.Tokens[d.Choice], d.Tokens...)
		r.Finish[d.Choice] = cmp.Or(d.Finish, r.Finish[d.Choice])
		r.Usage.Add(d.Usage)
	}
	if slices.Contains(r.Finish, "") {
		t.Errorf("finish = %q, want a reason for every choice", r.Finish)
	}
	return r
}

// Talk makes a conversation of messages by the first letters of their roles;
// each says its place.
func Talk(roles string) []template.Message {
	names := map[rune]string{'s': "system", 'u': "user", 'a': "assistant", 't': "tool"}
	var list []template.Message
	for i, r := range roles {
		list = append(list, template.Message{Role: names[r], Content: fmt.Sprint(i)})
	}
	return list
}

// Eager makes a toy model that wants to end its turn, or to break the line, at
// once, and then says anything.
func Eager(t testing.TB) *toy.Model {
	tok := Words(t)
	line := tok.Encode(nil, "\n", tokenizer.Options{})
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		for i := range row {
			row[i] = float32((i*31+len(tokens)*17+int(tokens[len(tokens)-1]))%23) / 8
		}
		for _, end := range tok.EOGs() {
			row[end] = 6
		}
		row[line[0]] += 3
	}}
}
