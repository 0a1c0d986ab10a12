package reward

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestEachFormatRatesTextAsItRatesWhatAModelWrites(t *testing.T) {
	for _, format := range formats() {
		if format.Writes { // package judge
			continue
		}
		_, model, v, texts := seen(t, format)
		req := ttstest.Request(1, 1)
		req.Prompt = tts.Prompt{Text: ttstest.Asked, NoBOS: true}
		prepared, err := model.PrepareRequest(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		judge, err := v.Open(t.Context(), model, req, prepared.Tokens)
		if err != nil {
			t.Fatal(err)
		}
		end, _ := model.Tokenizer.EOS()
		written := tts.Candidate{IDs: append(model.Tokenizer.Encode(nil, solution, tokenizer.Options{}), end), Finish: tts.FinishStop}
		if err := judge.Score(t.Context(), &written); err != nil {
			t.Fatal(err)
		}
		judge.Close()
		before := texts()

		ratings, spent, err := v.Rate(t.Context(), &req.Prompt, scaling.AggregateMin, solution)
		if err != nil {
			t.Fatal(err)
		}
		if got := texts()[len(before):]; !slices.Equal(got, before) {
			t.Errorf("%s reads given text as %q, a candidate's as %q", format.Name, got, before)
		}
		r := ratings[0]
		if !slices.Equal(r.StepScores, written.StepScores) || r.Score != slices.Min(r.StepScores) || spent < len(prepared.Tokens) {
			t.Errorf("%s: %+v, want the scores %v", format.Name, r, written.StepScores)
		}
		var steps []string
		for _, s := range r.Steps {
			steps = append(steps, solution[s.Start:s.End])
		}
		want := []string{"1.\n", "2.\n", "3.\n", "Answer: 3"}
		if format.whole {
			want = []string{solution}
		}
		if !slices.Equal(steps, want) {
			t.Errorf("%s: steps %q, want %q", format.Name, steps, want)
		}
	}
}

func TestResponsesThatCannotBeRatedAreRefused(t *testing.T) {
	opt := batcher.DefaultOptions()
	opt.Context = 64
	v, err := New(ttstest.RunOn(t, &toy.Model{Outputs: 1}, 64, opt), Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	prompt := &tts.Prompt{Text: ttstest.Asked, NoBOS: true}
	if _, _, err := v.Rate(t.Context(), prompt, scaling.AggregateLast, "1.", " \n\t"); !errors.Is(err, ErrBlank) {
		t.Errorf("a blank response: %v, want ErrBlank", err)
	}
	for _, n := range []int{100, 1 << 20} { // found out while computing, and before
		if _, _, err := v.Rate(t.Context(), prompt, scaling.AggregateLast, "1.", strings.Repeat("1.\n", n)); !errors.Is(err, batcher.ErrTooLong) {
			t.Errorf("a response of %d lines: %v, want ErrTooLong", n, err)
		}
	}
}

func TestAVerifierReadsModelsOfItsVocabulary(t *testing.T) {
	single := ttstest.Run(t, &toy.Model{Outputs: 1})
	v, err := New(single, Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	generator := ttstest.Run(t, &toy.Model{})
	if !v.Reads(generator) || v.Model() != single {
		t.Error("a verifier does not read its own vocabulary")
	}
	other := *generator
	other.Vocab++
	if v.Reads(&other) {
		t.Error("a verifier reads another vocabulary")
	}
	tagged, err := New(generator, formats()["math-shepherd"])
	if err != nil {
		t.Fatal(err)
	}
	if !tagged.Reads(&other) {
		t.Error("a verifier with words of its own does not read another vocabulary")
	}
}
