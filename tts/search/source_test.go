package search_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// machine is a Source that goes on with all but the first job on another model, as a
// server would, and hands the tokens on as spoil leaves them.
type machine struct {
	*tts.Model
	spoil func(job int, tokens []sampling.Token) []tts.Run
	none  bool // nothing is computed again

	mu     sync.Mutex
	jobs   int
	right  int
	wrongs []error
}

func (m *machine) Share(w *tts.Work) int { return len(w.Jobs) - 1 }

func (m *machine) Generate(ctx context.Context, w *tts.Work, done func(int, []tts.Run)) {
	m.mu.Lock()
	m.jobs += len(w.Jobs)
	if w.Pace <= 0 {
		m.wrongs = append(m.wrongs, fmt.Errorf("the work comes without this machine's pace"))
	}
	m.mu.Unlock()
	req := &tts.Request{Prompt: tts.Prompt{Tokens: w.Prompt}, N: len(w.Jobs), Sampling: w.Params, Delimiters: w.Delimiters, KeepStop: true, Background: true}
	req.Sampling.Stop, req.Sampling.IgnoreEOS, req.Sampling.MaxTokens = w.Params.Stop, true, 0
	got := make([][]sampling.Token, len(w.Jobs))
	for _, j := range w.Jobs {
		req.Continued = append(req.Continued, tts.Continued{Candidate: j.Candidate, Begun: j.Begun})
		req.Sampling.MaxTokens = max(req.Sampling.MaxTokens, j.MaxTokens)
	}
	for e, err := range (tts.Single{Model: m.Model}).Run(ctx, req) {
		if err != nil {
			break
		}
		d := ttstest.Flatten(e)
		for _, t := range d.Tokens {
			if n := len(got[d.Choice]); n == 0 || !w.Ends(&w.Jobs[d.Choice], got[d.Choice][n-1].ID, n) {
				got[d.Choice] = append(got[d.Choice], sampling.Token{ID: t.ID, Logprob: t.Logprob, Certainty: t.Certainty})
			}
		}
	}
	for i := range got {
		done(i, m.spoil(i, got[i]))
	}
}

func (m *machine) Checks(string) bool { return !m.none }

func (m *machine) Checked(from string, wrong error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wrong == nil {
		m.right++
	} else {
		m.wrongs = append(m.wrongs, wrong)
	}
}

// whole hands on what there is, as one run.
func whole(_ int, tokens []sampling.Token) []tts.Run { return []tts.Run{{From: "one", Tokens: tokens}} }

// told returns what must be the same of a search, wherever it was computed.
func told(f found) string {
	for _, c := range f.Candidates {
		c.Index = 0 // they are named by their tokens
	}
	return fmt.Sprintf("%q %+v %v %v %d %v %s", f.text, f.Tree, f.Reason, f.Agreement, f.Steps, f.Usage.Verifier, ids(f))
}

// ids returns the candidates, with all that is known of them.
func ids(f found) (out string) {
	for _, c := range f.Candidates {
		out += fmt.Sprintf("%v %q %v %v %v %v %q %d; ", c.IDs, c.Text, c.Finish, c.StepScores, c.Logprob, c.Certainty, c.Answer, c.Votes)
	}
	return out
}

var shared = []string{"beam8x2", "dvts8x4", "sc8;early_stop=false", "sc8", "bon8", "auto;n=8", "beam8x2;budget.tokens=70", "sc16;budget.tokens=90", "bon8;verifier=logprob", "pf8", "abon8", "sc8;verifier=self_certainty"}

func TestASearchIsTheSameWhereverItsCandidatesAreGenerated(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	other := ttstest.Run(t, ttstest.Thinks(t))
	for _, written := range shared {
		for seed := range uint64(3) {
			m.Source = nil
			want := told(carryOut(t, scriptedSearch(t, m, written), ttstest.Request(seed, 1)))
			for name, spoil := range map[string]func(int, []sampling.Token) []tts.Run{
				"whole": whole,
				"in two runs": func(i int, tokens []sampling.Token) []tts.Run {
					n := len(tokens) / 2
					return []tts.Run{{From: "one", Tokens: tokens[:n]}, {From: "two", Tokens: tokens[n:]}}[min(1, 1-min(1, n)):]
				},
				"cut off": func(i int, tokens []sampling.Token) []tts.Run {
					return []tts.Run{{From: "one", Tokens: tokens[:len(tokens)*i/16]}}
				},
				"given up": func(int, []sampling.Token) []tts.Run { return nil },
				"even jobs": func(i int, tokens []sampling.Token) []tts.Run {
					return [][]tts.Run{{{From: "one", Tokens: tokens}}, nil}[i%2]
				},
			} {
				source := &machine{Model: other, spoil: spoil}
				m.Source = source
				if got := told(carryOut(t, scriptedSearch(t, m, written), ttstest.Request(seed, 1))); got != want {
					t.Errorf("%s, seed %d, %s:\n%s\nhere alone:\n%s", written, seed, name, got, want)
				}
				if source.jobs == 0 || len(source.wrongs) > 0 || name == "whole" && source.right == 0 {
					t.Errorf("%s, %s: %d jobs, %d right, wrong %v", written, name, source.jobs, source.right, source.wrongs)
				}
			}
		}
	}
}

func TestTokensThatAreNotTheModelsAreFoundAndNamed(t *testing.T) {
	sweep.NoRace(t)
	m, other := ttstest.Run(t, ttstest.Thinks(t)), ttstest.Run(t, ttstest.Thinks(t))
	changed := func(change func(t *sampling.Token)) func(int, []sampling.Token) []tts.Run {
		return func(_ int, tokens []sampling.Token) []tts.Run {
			tokens = slices.Clone(tokens)
			for i := range tokens {
				change(&tokens[i])
			}
			return []tts.Run{{From: "liar", Tokens: tokens}}
		}
	}
	for name, spoil := range map[string]func(int, []sampling.Token) []tts.Run{
		"other tokens":          changed(func(t *sampling.Token) { t.ID = (t.ID + 1) % 300 }),
		"other logprobs":        changed(func(t *sampling.Token) { t.Logprob -= 1e-3 }),
		"other certainties":     changed(func(t *sampling.Token) { t.Certainty += 1e-3 }),
		"ids out of vocabulary": changed(func(t *sampling.Token) { t.ID = 1 << 30 }),
		"negative ids":          changed(func(t *sampling.Token) { t.ID = -7 }),
		"no numbers":            changed(func(t *sampling.Token) { t.Certainty -= t.Certainty / 0 * 0 }),
		"tokens behind the end": func(_ int, tokens []sampling.Token) []tts.Run {
			return []tts.Run{{From: "liar", Tokens: append(slices.Clone(tokens), tokens...)}}
		},
	} {
		for _, written := range []string{"beam8x2", "dvts8x4", "sc8", "bon8"} {
			m.Source = nil
			want := told(carryOut(t, scriptedSearch(t, m, written), ttstest.Request(7, 1)))
			source := &machine{Model: other, spoil: spoil}
			m.Source = source
			if got := told(carryOut(t, scriptedSearch(t, m, written), ttstest.Request(7, 1))); got != want {
				t.Errorf("%s changes %s:\n%s\nwant\n%s", name, written, got, want)
			}
			if len(source.wrongs) == 0 || source.right > 0 {
				t.Errorf("%s: %d runs are right, wrong are %v", name, source.right, source.wrongs)
			}
		}
	}
}

func TestRequestsThatOthersCannotGoOnWithAreComputedHere(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	source := &machine{Model: m, spoil: whole}
	m.Source = source
	for name, change := range map[string]func(*tts.Request){
		"words":        func(r *tts.Request) { r.BadWords = []string{"no"} },
		"min_tokens":   func(r *tts.Request) { r.MinTokens = 3 },
		"alternatives": func(r *tts.Request) { r.Sampling.Logprobs, r.Sampling.TopLogprobs = true, 2 },
	} {
		req := ttstest.Request(1, 1)
		change(req)
		carryOut(t, scriptedSearch(t, m, "sc8"), req)
		if source.jobs > 0 {
			t.Errorf("%s: %d jobs went elsewhere", name, source.jobs)
		}
	}
}

func TestAChoiceGoesOnAsTheCandidateThatWasBegun(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{})
	ask := func(req *tts.Request) (out [][]tts.Token) {
		out = make([][]tts.Token, req.N)
		req.Prompt = tts.Prompt{Tokens: []int32{4, 5}}
		req.Sampling = sampling.Params{Temperature: 1, Seed: 5, MaxTokens: 12, Logprobs: true, FrequencyPenalty: 1}
		for e, err := range (tts.Single{Model: m}).Run(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			d := ttstest.Flatten(e)
			out[d.Choice] = append(out[d.Choice], d.Tokens...)
		}
		return out
	}
	all := ask(&tts.Request{N: 3})
	begun := []int32{all[2][0].ID, all[2][1].ID}
	one := ask(&tts.Request{N: 1, Continued: []tts.Continued{{Candidate: 2, Begun: begun}}})
	if n := len(all[2]) - 2; n < 1 || !reflect.DeepEqual(one[0][:n], all[2][2:]) {
		t.Errorf("goes on with %+v, want %+v", one[0], all[2][2:])
	}
	long := &tts.Request{N: 1, Prompt: tts.Prompt{Tokens: []int32{4, 5}}, Continued: []tts.Continued{{Begun: make([]int32, m.Context-2)}}}
	for _, err := range (tts.Single{Model: m}).Run(t.Context(), long) {
		if e := (*tts.ContextError)(nil); !errors.As(err, &e) || e.Prompt != m.Context {
			t.Errorf("a candidate that fills the context ends with %v", err)
		}
	}
}
