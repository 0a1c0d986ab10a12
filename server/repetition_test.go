package server

import (
	"fmt"
	"strings"
	"testing"

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
