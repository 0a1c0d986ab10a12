package search_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestASearchAnswersByItsDeadlineWithTheBestOfWhatIsThere(t *testing.T) {
	for _, written := range []string{"sc8", "bon8", "sc1", "abon8", "deepconf8;deepconf.window=2", "beam8x2", "dvts8x2", "pf8", "auto;n=8"} {
		synctest.Test(t, func(t *testing.T) { // whose steps take 40 ms
			m := ttstest.RunOn(t, slow(ttstest.Thinks(t)), 256, batcher.DefaultOptions())
			whole := carryOut(t, scriptedSearch(t, m, written), ttstest.Request(3, 1))
			for _, deadline := range []time.Duration{20, 100, 200, 400, 10000} {
				s := scriptedSearch(t, m, written)
				s.Plan.Deadline = deadline * time.Millisecond
				began := time.Now()
				s.Start = began.Add(-5 * time.Millisecond)
				got := carryOut(t, s, ttstest.Request(3, 1))
				if took := time.Since(s.Start); took > s.Plan.Deadline {
					t.Errorf("%s: it took %v, and the deadline was %v", written, took, s.Plan.Deadline)
				}
				late := got.Reason == tts.StopDeadline
				if late != (deadline < 10000) && got.text[0] != whole.text[0] {
					t.Errorf("%s within %v stops for %q with %q, undisturbed it is %q", written, s.Plan.Deadline, got.Reason, got.text[0], whole.text[0])
				}
				if deadline == 20 && (got.Choices[0].Finish != "" || got.text[0] != "" || got.Reason != tts.StopDeadline) {
					t.Errorf("%s: before the prompt was computed it says %q (%q), and stops for %q", written, got.text[0], got.Choices[0].Finish, got.Reason)
				}
				for _, c := range got.Candidates {
					if c.Finish != "" && got.Choices[0].Finish == "" {
						t.Errorf("%s within %v: %q is chosen, and %q is complete", written, s.Plan.Deadline, got.text[0], c.Text)
					}
				}
			}
		})
	}
}

func TestAnUnfinishedAnswerIsTheBeginningOfAWholeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ttstest.RunOn(t, slow(ttstest.Thinks(t)), 256, batcher.DefaultOptions())
		plain := carryOut(t, scriptedSearch(t, m, "sc1"), ttstest.Request(3, 1))
		s := scriptedSearch(t, m, "sc1")
		s.Plan.Deadline = 150 * time.Millisecond
		got := carryOut(t, s, ttstest.Request(3, 1))
		if got.text[0] == "" || !strings.HasPrefix(plain.text[0], got.text[0]) || got.Choices[0].Finish != "" || got.Reason != tts.StopDeadline {
			t.Errorf("within 150 ms it says %q of %q, and stops for %q", got.text[0], plain.text[0], got.Reason)
		}
	})
}
