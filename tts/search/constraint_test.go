package search_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// strategies returns one of every kind over m.
func strategies(t *testing.T, m *tts.Model) map[string]tts.Strategy {
	all := map[string]tts.Strategy{"single": tts.Single{Model: m}}
	for _, written := range []string{"sc4;early_stop=false", "bon4", "beam8x2", "dvts4x2", "auto;n=8", "asc4", "deepconf4", "pf4"} {
		all[written] = scriptedSearch(t, m, written)
	}
	return all
}

// candidates returns the token lists of all answers of a run, kept or not.
func candidates(t *testing.T, s tts.Strategy, req *tts.Request) (ids [][]int32, text []string) {
	t.Helper()
	req.Sampling.Logprobs = true // lists the tokens
	r := ttstest.Result{}
	var out *tts.Outcome
	tokens := make([][]int32, max(req.N, 1))
	r.Text = make([]string, max(req.N, 1))
	for e, err := range s.Run(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		d := ttstest.Flatten(e)
		r.Text[d.Choice] += d.Text
		for _, tok := range d.Tokens {
			tokens[d.Choice] = append(tokens[d.Choice], tok.ID)
		}
		if d.Outcome != nil {
			out = d.Outcome
		}
	}
	if out == nil {
		return tokens, r.Text
	}
	for _, c := range out.Candidates {
		ids = append(ids, c.IDs)
	}
	return ids, r.Text
}

func TestNothingEndsAnAnswerBeforeItsLeastTokens(t *testing.T) {
	m := ttstest.Run(t, ttstest.Eager(t))
	const stop = 300
	for name, s := range strategies(t, m) {
		for _, least := range []int{1, 7, 40} {
			req := ttstest.Request(uint64(least), 1)
			req.MinTokens, req.Sampling.MaxTokens, req.Sampling.Stop = least, 60, []int32{stop}
			ids, _ := candidates(t, s, req)
			for _, c := range ids {
				ends := func(id int32) bool { return id == stop || m.Tokenizer.EOG(id) }
				if at := slices.IndexFunc(c, ends); at >= 0 && at < least || len(c) < least {
					t.Errorf("%s: a candidate of %d tokens ends at %d, want %d first", name, len(c), at, least)
				}
			}
		}
	}
}

func TestAStopStringEndsNoAnswerBeforeItsLeastTokens(t *testing.T) {
	prompt := []int32{5}
	m := ttstest.Run(t, ttstest.Says(t, prompt, "12121234"))
	n := len(m.Tokenizer.Encode(nil, "1212", tokenizer.Options{}))
	for _, c := range []struct {
		least int
		stop  string
		want  string
	}{
		{0, "12", ""},
		{n, "12", "1212"},
		{n, "21", "121"}, // may begin before
		{n, "121234", "12"},
	} {
		req := &tts.Request{Prompt: tts.Prompt{Tokens: prompt}, Rules: constrain.Rules{MinTokens: c.least}, Stop: []string{c.stop}}
		if got := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req)).Text[0]; got != c.want {
			t.Errorf("%q after %d tokens: %q, want %q", c.stop, c.least, got, c.want)
		}
	}
}

func TestBadWordsAreNeverCompleted(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	m := ttstest.Run(t, ttstest.Eager(t))
	words := []string{"apples", "box", "day", "12", "each", "Answer"}
	var bad [][]int32
	for _, word := range words {
		for _, text := range []string{word, " " + word} {
			bad = append(bad, m.Tokenizer.Encode(nil, text, tokenizer.Options{}))
		}
	}
	completes := func(ids []int32) bool {
		return slices.ContainsFunc(bad, func(word []int32) bool {
			for i := range ids {
				if i+len(word) <= len(ids) && slices.Equal(ids[i:i+len(word)], word) {
					return true
				}
			}
			return false
		})
	}
	for name, s := range strategies(t, m) {
		said := 0
		for seed := range uint64(sweep.Of(t, 2, 8)) {
			free, kept := ttstest.Request(seed, 1), ttstest.Request(seed, 1)
			free.Sampling.MaxTokens, kept.Sampling.MaxTokens = 200, 200
			free.MinTokens, kept.MinTokens = 150, 150
			kept.BadWords = words
			ids, _ := candidates(t, s, free)
			for _, c := range ids {
				if completes(c) {
					said++
				}
			}
			ids, _ = candidates(t, s, kept)
			for _, c := range ids {
				if completes(c) {
					t.Errorf("%s: %q completes a bad word", name, m.Decode(c))
				}
			}
		}
		if said == 0 {
			t.Errorf("%s: no candidate says a bad word when it may", name)
		}
	}
}

func TestOnlyAllowedTokensAreSampled(t *testing.T) {
	m := ttstest.Run(t, ttstest.Eager(t))
	allowed := []int32{100, 200, 201, 1023}
	for name, s := range strategies(t, m) {
		req := ttstest.Request(3, 1)
		req.Allowed, req.Sampling.MaxTokens = allowed, 30
		ids, _ := candidates(t, s, req)
		for _, c := range ids {
			if i := slices.IndexFunc(c, func(id int32) bool { return !slices.Contains(allowed, id) }); i >= 0 {
				t.Errorf("%s: token %d was sampled, allowed are %v", name, c[i], allowed)
			}
		}
	}
	req := ttstest.Request(3, 1)
	req.Allowed, req.MinTokens = m.Tokenizer.EOGs()[:1], 5
	for _, err := range (tts.Single{Model: m}).Run(t.Context(), req) {
		if err != nil && !errors.Is(err, sampling.ErrForbidden) {
			t.Errorf("where nothing is left to say: %v, want %v", err, sampling.ErrForbidden)
		}
	}
}

func TestWhatIsForbiddenChangesNothingElseAloneOrInACrowd(t *testing.T) {
	sweep.Full(t)
	m := ttstest.RunOn(t, ttstest.Eager(t), 512, batcher.DefaultOptions())
	for name, s := range strategies(t, m) {
		ask := func(seed uint64) *tts.Request {
			req := ttstest.Request(seed, 2)
			req.MinTokens, req.BadWords, req.Sampling.MaxTokens = 12, []string{"apples", "box"}, 40
			return req
		}
		alone := make([][]string, 12)
		for i := range alone {
			_, alone[i] = candidates(t, s, ask(uint64(i)))
		}
		crowd := make([][]string, len(alone))
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() { _, crowd[i] = candidates(t, s, ask(uint64(i))) })
		}
		all.Wait()
		for i := range alone {
			if !slices.Equal(alone[i], crowd[i]) {
				t.Errorf("%s: seed %d says %q in a crowd, %q alone", name, i, crowd[i], alone[i])
			}
		}
		// A constraint that never bites is none.
		free, idle := ttstest.Request(5, 2), ttstest.Request(5, 2)
		free.Sampling.MaxTokens, idle.Sampling.MaxTokens = 40, 40
		idle.BadWords = []string{"\x00unheard of\x00"}
		_, want := candidates(t, s, free)
		if _, got := candidates(t, s, idle); !slices.Equal(got, want) {
			t.Errorf("%s: %q with a word that nobody says, %q without", name, got, want)
		}
	}
}

func TestWhatEndsAnAnswerCanStayInItsText(t *testing.T) {
	prompt := []int32{5}
	for _, c := range []struct {
		says    string
		stops   []string
		ids     string // of stop tokens
		keep    bool
		special bool
		want    string
	}{
		{says: "12345", stops: []string{"34"}, want: "12"},
		{says: "12345", stops: []string{"34"}, keep: true, want: "1234"},
		{says: "12345", stops: []string{"345", "34"}, keep: true, want: "1234"},
		{says: "12345", ids: "4", want: "123"},
		{says: "12345", ids: "4", keep: true, want: "1234"},
		{says: "12", keep: true, want: "12"},
		{says: "12", special: true, want: "12"},
		{says: "12", keep: true, special: true, want: "12<|im_end|>"},
		{says: "1<|im_start|>2", want: "12"},
		{says: "1<|im_start|>2", special: true, want: "1<|im_start|>2"},
	} {
		m := ttstest.Run(t, ttstest.Says(t, prompt, c.says))
		req := &tts.Request{Prompt: tts.Prompt{Tokens: prompt}, Stop: c.stops, KeepStop: c.keep, Special: c.special, Sampling: sampling.Params{Logprobs: true}}
		if c.ids != "" {
			req.Sampling.Stop = m.Tokenizer.Encode(nil, c.ids, tokenizer.Options{})
		}
		r := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req))
		if r.Text[0] != c.want || r.Finish[0] != tts.FinishStop {
			t.Errorf("%+v: %q (%s)", c, r.Text[0], r.Finish[0])
		}
		var spelled strings.Builder
		for _, tok := range r.Tokens[0] {
			if !tok.Hidden {
				spelled.Write(tok.Bytes)
			}
		}
		if !strings.HasPrefix(spelled.String(), c.want) {
			t.Errorf("%+v: the tokens spell %q", c, spelled.String())
		}
	}
}

func TestAModelsOwnStopsNeverStayInTheText(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{Logits: func(_ []int32, row []float32) {
		clear(row)
		row[100] = 50
	}})
	said := m.Decode([]int32{100})
	m.Stops = []string{strings.Repeat(said, 3)}
	req := ttstest.Request(1, 1)
	req.Prompt = tts.Prompt{Messages: ttstest.Talk("u")}
	req.KeepStop, req.Stop = true, []string{"never"}
	if got := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req)).Text[0]; got != "" {
		t.Errorf("%q is left of the model's own stop", got)
	}
}

func TestIgnoringTheModelsEndLeavesTheRequestsOwn(t *testing.T) {
	prompt := []int32{5}
	m := ttstest.Run(t, ttstest.Says(t, prompt, "123"))
	req := &tts.Request{Prompt: tts.Prompt{Tokens: prompt}, Sampling: sampling.Params{IgnoreEOS: true, MaxTokens: 20, Stop: m.Tokenizer.Encode(nil, "3", tokenizer.Options{})}}
	if r := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req)); r.Text[0] != "12" || r.Finish[0] != tts.FinishStop {
		t.Errorf("%q (%s), want 12 (stop)", r.Text[0], r.Finish[0])
	}
	req.Sampling.Stop = nil
	if r := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req)); r.Finish[0] != tts.FinishLength || r.Usage.Completion != 20 {
		t.Errorf("%+v, want 20 tokens", r)
	}
}
