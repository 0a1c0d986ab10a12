package openai

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// unrendered are the fields of sampling.Params that rendering leaves out.
var unrendered = map[string]string{
	"LogitBias":   "the request has it",
	"DRYBreakers": "the request has their texts",
	"Constraint":  "the request has the format",
	"Candidate":   "each choice has its own",
	"Stop":        "the request has it, with what the model adds",
	"FlushEvery":  "it changes how tokens come, not which",
}

func TestEveryFieldOfSamplingIsRenderedOrSaysWhyNot(t *testing.T) {
	render := func(p sampling.Params) string {
		t.Helper()
		r := newRendered(&tts.Request{Sampling: p}, &tts.Prepared{}, 512, true)
		text, err := json.Marshal(&r.params)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	fields := 0
	ttstest.Fields(&sampling.Params{}, func(path string, i int, _ reflect.Value) {
		var with, without sampling.Params
		switch path { // which others switch on
		case "RepetitionWindow":
			with.RepetitionPenalty, without.RepetitionPenalty = 0.5, 0.5
		case "TopLogprobs":
			with.Logprobs, without.Logprobs = true, true
		}
		field, _ := ttstest.Field(&with, path)
		ttstest.Fill(t, i, field)
		fields++
		if _, known := unrendered[path]; (render(with) == render(without)) != known {
			t.Errorf("%s: rendered as %s, without it %s, with a reason to leave it out: %v", path, render(with), render(without), known)
		}
	})
	if fields < 15 {
		t.Errorf("%d fields were tried", fields)
	}
}
