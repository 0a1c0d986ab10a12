package tts_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	. "github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestSingleEndsWhereTheModelOrAStopStringDoes(t *testing.T) {
	prompt := []int32{5, 6, 7}
	for _, c := range []struct {
		says  string
		stops []string
		max   int
		want  string
		why   Finish
	}{
		{says: "Twelve apples. €", want: "Twelve apples. €", why: FinishStop},
		{says: "Twelve apples.", stops: []string{"les"}, want: "Twelve app", why: FinishStop},
		{says: "Twelve apples.", stops: []string{"never", "ve appl"}, want: "Twel", why: FinishStop},
		{says: "Twelve apples.", stops: []string{"Tw"}, want: "", why: FinishStop},
		{says: "Twelve apples.", stops: []string{"apples. And"}, want: "Twelve apples.", why: FinishStop},
		{says: "1234567", max: 3, want: "123", why: FinishLength},
		{says: "1234567", max: 3, stops: []string{"345"}, want: "123", why: FinishLength},
		{says: "one<|im_start|>two", want: "onetwo", why: FinishStop},
	} {
		m := ttstest.Run(t, ttstest.Says(t, prompt, c.says))
		req := &Request{Prompt: Prompt{Tokens: prompt}, Stop: c.stops, Sampling: sampling.Params{MaxTokens: c.max}}
		r := ttstest.Collect(t, 1, Single{m}.Run(t.Context(), req))
		if r.Text[0] != c.want || r.Finish[0] != c.why {
			t.Errorf("says %q, stops %q: %q (%s), want %q (%s)", c.says, c.stops, r.Text[0], r.Finish[0], c.want, c.why)
		}
		if r.Usage.Prompt != 3 || r.Usage.Completion == 0 {
			t.Errorf("usage = %+v", r.Usage)
		}
	}
}

func TestSingleComputesThePromptOnceForAllChoices(t *testing.T) {
	m := &toy.Model{}
	model := ttstest.Run(t, m)
	prompt := make([]int32, 100)
	for i := range prompt {
		prompt[i] = int32(i + 1)
	}
	const n = 8
	req := &Request{Prompt: Prompt{Tokens: prompt}, N: n, Sampling: sampling.Params{MaxTokens: 5, Temperature: 1, Seed: 3}}
	r := ttstest.Collect(t, n, Single{model}.Run(t.Context(), req))
	if r.Usage.Prompt != 100 || r.Usage.Completion != n*5 {
		t.Errorf("usage = %+v, want 100 and %d", r.Usage, n*5)
	}
	// A fork computes its parent's last position again, to sample from it.
	if most := 100 + n + n*5; m.Computed() > most {
		t.Errorf("%d tokens computed, want at most %d", m.Computed(), most)
	}
	slices.Sort(r.Text)
	if len(slices.Compact(r.Text)) < 2 {
		t.Error("all choices are the same")
	}
	again := ttstest.Collect(t, n, Single{model}.Run(t.Context(), req))
	slices.Sort(again.Text)
	if !slices.Equal(slices.Compact(again.Text), slices.Compact(r.Text)) {
		t.Error("the same seed gave other choices")
	}
	if again.Usage.Cached == 0 {
		t.Error("the second run took nothing from the prefix cache")
	}
}

func TestLogprobsGoWithTheTextTheyBeginIn(t *testing.T) {
	prompt := []int32{5}
	m := ttstest.Run(t, ttstest.Says(t, prompt, "Twelve apples, pears"))
	req := &Request{Prompt: Prompt{Tokens: prompt}, Stop: []string{"ples"}, Sampling: sampling.Params{Logprobs: true, TopLogprobs: 2}}
	r := ttstest.Collect(t, 1, Single{m}.Run(t.Context(), req))
	var spelled []byte
	for _, tok := range r.Tokens[0] {
		spelled = append(spelled, tok.Bytes...)
		if !tok.Known || len(tok.Top) != 2 || tok.Top[0].ID != tok.ID || tok.Logprob > 0 {
			t.Errorf("token %+v", tok)
		}
	}
	if r.Text[0] != "Twelve ap" || !strings.HasPrefix(string(spelled), "Twelve ap") || strings.Contains(string(spelled), "pears") {
		t.Errorf("text %q with tokens %q, want tokens no further than the one the text ends in", r.Text[0], spelled)
	}
}

func TestEchoBeginsWithThePromptAndItsLogprobs(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{})
	prompt := m.Tokenizer.Encode(nil, "Twelve apples", tokenizer.Options{})
	req := &Request{Prompt: Prompt{Tokens: prompt}, Echo: true, NoTokens: true, Sampling: sampling.Params{Logprobs: true, TopLogprobs: 1}}
	r := ttstest.Collect(t, 1, Single{m}.Run(t.Context(), req))
	if r.Text[0] != "Twelve apples" || r.Finish[0] != FinishLength || r.Usage.Completion != 0 {
		t.Errorf("echo = %q (%s), usage %+v", r.Text[0], r.Finish[0], r.Usage)
	}
	if len(r.Tokens[0]) != len(prompt) || r.Tokens[0][0].Known || !r.Tokens[0][1].Known {
		t.Errorf("tokens = %+v, want the prompt's, the first without a log-probability", r.Tokens[0])
	}
}

func TestRequestsThatCannotBeAnsweredSayWhy(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{Context: 32})
	bare := *m
	bare.Template = nil
	for _, c := range []struct {
		model  *Model
		prompt Prompt
		want   error
	}{
		{m, Prompt{}, ErrEmpty},
		{m, Prompt{Tokens: []int32{1, 1024}}, ErrToken},
		{m, Prompt{Tokens: []int32{-1}}, ErrToken},
		{m, Prompt{Tokens: make([]int32, 32)}, batcher.ErrTooLong},
		{m, Prompt{Text: strings.Repeat("apples ", 100)}, batcher.ErrTooLong},
		{m, Prompt{Text: strings.Repeat("apples ", 1<<20)}, batcher.ErrTooLong},
		{&bare, Prompt{Messages: []template.Message{{Role: "user", Content: "Hi"}}}, ErrTemplate},
	} {
		n := 0
		for _, err := range (Single{c.model}).Run(t.Context(), &Request{Prompt: c.prompt}) {
			n++
			if !errors.Is(err, c.want) {
				t.Errorf("%+v: %v, want %v", c.prompt, err, c.want)
			}
		}
		if n != 1 {
			t.Errorf("%+v: %d deltas, want the error alone", c.prompt, n)
		}
	}
	var long *ContextError
	for _, err := range (Single{m}).Run(t.Context(), &Request{Prompt: Prompt{Tokens: make([]int32, 40)}}) {
		if !errors.As(err, &long) || long.Limit != 32 || long.Prompt != 40 {
			t.Errorf("%v, want 40 of 32", err)
		}
	}
}

func TestAModelsOwnStopsEndConversationsAlone(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{Logits: func(_ []int32, row []float32) {
		clear(row)
		row[100] = 50
	}})
	said := m.Decode([]int32{100})
	m.Stops = []string{strings.Repeat(said, 3)}
	for _, c := range []struct {
		prompt Prompt
		want   string
		finish Finish
	}{
		{Prompt{Messages: []template.Message{{Role: "user", Content: "Hi"}}}, "", FinishStop},
		{Prompt{Text: "Hi"}, strings.Repeat(said, 5), FinishLength},
	} {
		r := ttstest.Collect(t, 1, Single{m}.Run(t.Context(), &Request{Prompt: c.prompt, Sampling: sampling.Params{MaxTokens: 5}}))
		if r.Text[0] != c.want || r.Finish[0] != c.finish {
			t.Errorf("%+v: %q (%s), want %q (%s)", c.prompt, r.Text[0], r.Finish[0], c.want, c.finish)
		}
	}
}

func TestLeavingARunClosesItsSequences(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{Logits: func(_ []int32, row []float32) { // run checks
		clear(row)
		row[100] = 50
	}})
	n := 0
	for _, err := range (Single{m}).Run(t.Context(), &Request{Prompt: Prompt{Tokens: []int32{1, 2}}, N: 3}) {
		if n++; err != nil || n == 10 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range (Single{m}).Run(ctx, &Request{Prompt: Prompt{Tokens: []int32{1, 2}}, N: 3}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the cancelled run ended with %v, want context.Canceled", last)
	}
}

func TestInterleaveEndsAllSourcesAtTheFirstFault(t *testing.T) {
	boom := errors.New("boom")
	ended := make(chan struct{}, 3)
	patient := func(ctx context.Context) iter.Seq2[Event, error] {
		return func(yield func(Event, error) bool) {
			defer func() { ended <- struct{}{} }()
			<-ctx.Done()
			yield(Event{}, ctx.Err())
		}
	}
	failing := func(context.Context) iter.Seq2[Event, error] {
		return func(yield func(Event, error) bool) { yield(Event{}, boom) }
	}
	n := 0
	for _, err := range Interleave(t.Context(), patient, failing, patient) {
		if n++; !errors.Is(err, boom) {
			t.Errorf("error %v, want %v", err, boom)
		}
	}
	if n != 1 || len(ended) != 2 {
		t.Errorf("%d events and %d ended sources, want 1 and 2", n, len(ended))
	}
	defer func() {
		if p := recover(); p != "bug" {
			t.Errorf("recovered %v, want the source's panic", p)
		}
	}()
	panicking := func(context.Context) iter.Seq2[Event, error] {
		return func(func(Event, error) bool) { panic("bug") }
	}
	for range Interleave(t.Context(), patient, panicking) {
		t.Error("an event from nowhere")
	}
}
