package tts

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

func TestAModelThatNamesNoSamplingIsTruncatedUnlessItIsBuiltIn(t *testing.T) {
	author := sampling.Config{TopK: new(20)}
	apis := sampling.Config{Temperature: new(float32(0.8)), TopK: new(40)}
	for _, c := range []struct {
		author, configured, custom sampling.Config
		builtIn                    bool
		want                       string
	}{
		{want: "min_p=0.05"},
		{builtIn: true},
		{author: author, want: "top_k=20"},
		{configured: sampling.Config{TopK: new(3), MinP: new(float32(0))}, want: "top_k=3,min_p=0"},
		{author: author, configured: sampling.Config{TopK: new(3)}, want: "top_k=3"},
		{author: author, custom: apis, want: "temperature=0.8,top_k=20"},
		{custom: apis, want: "temperature=0.8,top_k=40"},
	} {
		var m Model
		m.SampleAs(c.author, c.configured, c.builtIn)
		if got := m.Defaults(c.custom).String(); got != c.want {
			t.Errorf("author %q, configured %q, API %q, built in %v: %q, want %q", c.author, c.configured, c.custom, c.builtIn, got, c.want)
		}
	}
}

func TestRepetitionIsLessLikelyWhereNobodySaysHowAnswersAreSampled(t *testing.T) {
	hot, top := sampling.Config{Temperature: new(float32(0.7))}, sampling.Config{TopK: new(20)}
	for _, c := range []struct {
		author, configured, named sampling.Config
		builtIn                   bool
		want, minP                float32
	}{
		{want: guardPenalty, minP: guardMinP},
		{configured: top, named: top, want: guardPenalty, minP: guardMinP},
		{named: sampling.Config{MinP: new(float32(0.02))}, want: guardPenalty},
		{builtIn: true},
		{author: top},
		{configured: hot},
		{named: hot},
		{named: sampling.Config{FrequencyPenalty: new(float32(0))}},
	} {
		var m Model
		m.SampleAs(c.author, c.configured, c.builtIn)
		var p sampling.Params
		if m.Guard(&p, c.named); p.FrequencyPenalty != c.want || p.MinP != c.minP {
			t.Errorf("author %q, configured %q, request %q, built in %v: %v and min_p %v, want %v and %v", c.author, c.configured, c.named, c.builtIn, p.FrequencyPenalty, p.MinP, c.want, c.minP)
		}
	}
}

func TestWhatIsInForceIsSaidAsItWasSet(t *testing.T) {
	for _, text := range []string{"temperature=0.7,top_k=20,min_p=0.05,repetition_penalty=1.1,repeat_last_n=64", "temperature=0,presence_penalty=1.5", "temperature=1,repetition_penalty=1.05,repeat_last_n=-1"} {
		c, err := sampling.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var p sampling.Params
		c.Apply(&p)
		if got := sampling.ConfigOf(&p).String(); got != text {
			t.Errorf("%s is said as %s", text, got)
		}
	}
}
