package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/jsonread"
)

func TestAnAnswerThatRepeatsItselfIsEnded(t *testing.T) {
	fox := says(t, strings.Repeat(" red fox", 200))
	fox.Context = 2048
	f := start(t, fox, nil)
	for _, c := range []struct {
		fields, finish string
		times          int
	}{
		{`"max_pattern_size":64,"min_count":8`, "repetition", 8},
		{`"max_pattern_size":64,"min_pattern_size":5,"min_count":3`, "repetition", 6}, // of which the pattern has two: one is shorter
		{`"max_pattern_size":1,"min_count":2`, "length", 0},
		{`"max_pattern_size":0`, "length", 0},
	} {
		text, finish := f.generated(t, `,"temperature":0,"max_tokens":400,"repetition_detection":{`+c.fields+`}`)
		if finish != c.finish || c.times > 0 && text != strings.Repeat(" red fox", c.times) {
			t.Errorf("%s: ends by %q after %q", c.fields, finish, text)
		}
	}
	for fields, at := range map[string]string{
		`{"max_pattern_size":1025,"min_count":2}`: "max_pattern_size", `{"max_pattern_size":4,"min_pattern_size":5,"min_count":2}`: "min_pattern_size",
		`{"max_pattern_size":4,"min_count":1}`: "min_count", `{"max_pattern_size":4}`: "min_count",
	} {
		code := jsonread.CodeValue
		if !strings.Contains(fields, "min_count") {
			code = jsonread.CodeMissing
		}
		status, _, answer := f.post("/v1/chat/completions", chatBody(fmt.Sprintf(`,"repetition_detection":%s`, fields)))
		wantError(t, fields, status, answer, 400, code, "repetition_detection."+at)
	}
}

func TestARequestThatEndsRepetitionsMakesThemLessLikely(t *testing.T) {
	f := start(t, says(t, "Fine."), nil)
	f.model.SampleAs(sampling.Config{}, sampling.Config{}, false)
	const guard = `,"repetition_detection":{"max_pattern_size":64,"min_count":8}`
	for fields, want := range map[string]string{
		"":                                 `"frequency_penalty":0,`,
		guard:                              `"frequency_penalty":0.2,`,
		guard + `,"top_p":0.9`:             `"frequency_penalty":0.2,`,
		guard + `,"temperature":0`:         `"frequency_penalty":0,`,
		guard + `,"frequency_penalty":0.5`: `"frequency_penalty":0.5,`,
		`,"repetition_detection":{"max_pattern_size":0}`: `"frequency_penalty":0,`,
	} {
		if status, _, answer := f.post("/v1/chat/completions/render", chatBody(fields)); status != 200 || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %d %s, want %s", fields, status, answer, want)
		}
	}
}
