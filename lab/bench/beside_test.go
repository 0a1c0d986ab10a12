package bench

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

func TestTheOtherLoadIsReadFromKeysAndValues(t *testing.T) {
	o := LoadOptions{Model: "m", URL: "u", Concurrency: 4, Requests: 9, PromptWords: 20, MaxTokens: 64, Beside: "model=m+bon16,c=32,prompt-words=7"}
	got, err := parseBeside(o)
	if err != nil || got.Model != "m+bon16" || got.URL != "u" || got.Concurrency != 32 || got.Requests != 0 || got.PromptWords != 7 || got.MaxTokens != 64 {
		t.Errorf("parseBeside = %+v, %v", got, err)
	}
	for _, bad := range []string{"", "c", "c=", "c=0", "c=-1", "n=many", "model=", "words=3", "c=1,,n=2"} {
		o.Beside = bad
		if _, err := parseBeside(o); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestPiecesOfAnswersCountInThePhaseThatTheyCameIn(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms float64) time.Time { return start.Add(time.Duration(ms * float64(time.Millisecond))) }
	phases := []phase{{"alone", at(0), at(1000)}, {"beside", at(1000), at(2000)}, {"alone", at(2000), at(3000)}}
	// One stream through all phases, a token every 10, 15 and 10 ms, cut off at the end.
	long := sample{begun: at(-50), err: context.Canceled}
	for ms := -20.0; ms < 3000; {
		long.texts = append(long.texts, at(ms))
		if ms >= 1000 && ms < 2000 {
			ms += 15
		} else {
			ms += 10
		}
	}
	// A short answer in each, of two tokens a piece.
	samples := []sample{long}
	for i, first := range []float64{20, 60, 30} {
		begun := float64(i)*1000 + 100
		s := sample{begun: at(begun), produced: 20}
		for k := range 10 {
			s.texts = append(s.texts, at(begun+first+20*float64(k)))
		}
		samples = append(samples, s)
	}
	samples = append(samples, sample{begun: at(1500), err: errors.New("refused")})
	r, err := reportBeside(LoadOptions{}, samples, []sample{{}}, phases)
	if err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 0.01*want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	near("TTFT alone", r.Phases[0].TTFT.Max, 20)
	near("TTFT beside", r.Phases[1].TTFT.Max, 60)
	near("ratio of TTFT", r.TTFTRatio.Median, 60/25.0)
	near("TPOT of the stream alone", r.Phases[0].TPOT.Min, 10/2.0) // pieces are of two tokens, as those of whole answers
	near("TPOT of the stream beside", r.Phases[1].TPOT.Min, 15/2.0)
	near("TPOT of the short answer", r.Phases[2].TPOT.Max, 20/2.0)
	near("ratio of TPOT", r.TPOTRatio.Median, 1.5)
	if r.Phases[1].Begun != 2 || r.Errors != 1 || r.FirstError != "refused" || r.Completed != 1 {
		t.Errorf("report = %+v", r)
	}
	if _, err := reportBeside(LoadOptions{}, samples[4:], nil, phases); err == nil {
		t.Error("a load of which nothing succeeded is reported")
	}
}
