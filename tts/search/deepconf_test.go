package search_test

import (
	"testing"

	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestUnsureAnswersEndEarlyWithoutAVote(t *testing.T) {
	model := ttstest.Thinks(t)
	sure, one := model.Logits, ttstest.Words(t).Encode(nil, "1", tokenizer.Options{})[0]
	model.Logits = func(tokens []int32, row []float32) {
		sure(tokens, row)
		if tokens[len(tokens)-1] == one { // it is less sure of what follows
			for i := range row {
				row[i] /= 4
			}
		}
	}
	m := ttstest.Run(t, model)
	s := Search{Model: m, Plan: plan(t, "deepconf16;deepconf.warmup=4;deepconf.eta=25;deepconf.window=3;early_stop=false")}
	req := ttstest.Request(2, 1)
	got := carryOut(t, s, req)
	ended, filtered := 0, 0
	for i, c := range got.Candidates {
		if c.Confidence <= 0 || c.Score <= 0 || c.Score >= 1 {
			t.Errorf("candidate %d has the confidence %v and the score %v", c.Index, c.Confidence, c.Score)
		}
		if c.Filtered {
			filtered++
			if c.Index < 4 && c.Finish == "" {
				t.Errorf("candidate %d of the warm-up was ended", c.Index)
			}
		}
		if c.Finish == "" {
			ended++
			if !c.Filtered || i == 0 {
				t.Errorf("candidate %d ends nowhere: %q", c.Index, c.Text)
			}
		}
	}
	if ended == 0 || filtered <= ended || got.Choices[0].Filtered || got.Select != scaling.SelectWeightedVote {
		t.Errorf("of %d candidates %d were ended and %d filtered; the choice is %+v by %s", len(got.Candidates), ended, filtered, got.Choices[0], got.Select)
	}
	whole := s
	whole.Plan.DeepConf.Eta = 100 // nobody ends
	if all := carryOut(t, whole, req); got.usage.Completion >= all.usage.Completion {
		t.Errorf("it costs %d tokens, %d where no answer ends early", got.usage.Completion, all.usage.Completion)
	}
}

func TestTheOutcomeTellsTheWindowThatTheWarmUpGave(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	got := carryOut(t, Search{Model: m, Plan: plan(t, "deepconf16")}, ttstest.Request(1, 1))
	tokens := 0
	for _, c := range got.Candidates {
		if c.Index < got.Plan.DeepConf.Warmup {
			tokens += len(c.IDs)
		}
	}
	if d := got.Plan.DeepConf; d.Warmup != 3 || d.Window != tokens/3/4 || d.Eta != 90 || d.Tau != 0.95 || d.TopK != 20 {
		t.Errorf("a warm-up of %d tokens gives %+v", tokens, d)
	}
}

func TestAlternativesOfTokensAreThoseThatTheRequestWants(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	for _, top := range []int{0, 3} {
		req := ttstest.Request(1, 1)
		req.Sampling.Logprobs, req.Sampling.TopLogprobs = true, top
		got := carryOut(t, Search{Model: m, Plan: plan(t, "deepconf4")}, req)
		for _, tok := range got.Choices[0].Tokens {
			if len(tok.Top) != top {
				t.Fatalf("a token has %d alternatives, want %d", len(tok.Top), top)
			}
		}
	}
}
