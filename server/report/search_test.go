package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func TestPartialTextIsReportedOnce(t *testing.T) {
	s := NewSearch(&scaling.Plan{Include: scaling.Include{Partial: true}}, &sampling.Params{}, nil, time.Time{})
	s.Expect(1, 1)
	s.Take(tts.Event{What: &tts.Progress{Partial: []tts.Partial{{Index: 2, Parent: 7, Text: "new", Tokens: 3, Logprob: -0.5, Judged: true, Score: 0.25}}}})
	progress := func() string {
		b, err := json.Marshal(s.Progress())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first, second := progress(), progress()
	if want := `"partial":[{"index":2,"parent":7,"text":"new","tokens":3,"logprob":-0.5,"score":0.25}]`; !strings.Contains(first, want) {
		t.Errorf("progress is %s, want %s", first, want)
	}
	if strings.Contains(second, "partial") {
		t.Errorf("a keep-alive chunk repeats it: %s", second)
	}
}
