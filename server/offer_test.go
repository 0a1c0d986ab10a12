package server

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/registry"
)

// wireCard is a model's card, written down apart from the server's own types.
type wireCard struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"`
	MaxModelLen int    `json:"max_model_len"`
	Task        string `json:"task"`
	Lutra       *struct {
		Demo      bool     `json:"demo"`
		Methods   []string `json:"methods"`
		Verifiers []string `json:"verifiers"`
		Presets   []string `json:"presets"`
		MaxTurns  *int     `json:"max_turns"`
		Thinking  bool     `json:"thinking"`
		Defaults  *struct {
			sampling.Config
			MaxTokens       *int    `json:"max_tokens"`
			ReasoningFormat string  `json:"reasoning_format"`
			Scaling         *string `json:"scaling"`
		} `json:"defaults"`
	} `json:"lutra"`
	Status struct{ Value string } `json:"status"`
}

func (f *fixture) cards(t *testing.T) map[string]wireCard {
	t.Helper()
	_, _, answer := f.do("GET", "/v1/models", nil)
	list := strict[struct {
		Object string
		Data   []wireCard
	}](t, answer)
	cards := map[string]wireCard{}
	for _, c := range list.Data {
		cards[c.ID] = c
		_, _, one := f.do("GET", "/v1/models/"+c.ID, nil)
		if a, b := string(must(json.Marshal(strict[wireCard](t, one)))), string(must(json.Marshal(c))); a != b {
			t.Errorf("%s alone is %s, in the list %s", c.ID, a, b)
		}
	}
	return cards
}

func TestACardListsWhatMayBeOffered(t *testing.T) {
	f := real(t, nil)
	f.model.MaxTurns = 6
	prm := must(must(f.models.known()).Registry().Judge("lutra-tiny-prm"))
	if err := f.Publish(registry.Served{Model: f.model, Demo: true, Aliases: []string{"mini"}}, registry.Served{Model: prm.Model, Reward: prm.Reward, Aliases: []string{"prm"}}); err != nil {
		t.Fatal(err)
	}
	cards := f.cards(t)
	for _, name := range []string{"lutra-tiny-s", "mini", "lutra-tiny-s+bon8"} {
		c := cards[name]
		if c.Lutra == nil || c.MaxModelLen != f.model.Context {
			t.Fatalf("%s: %+v", name, c)
		}
		o := c.Lutra
		if !o.Demo || o.MaxTurns == nil || *o.MaxTurns != 6 || o.Thinking ||
			!slices.Equal(o.Methods, []string{"none", "self_consistency", "best_of_n", "deepconf", "beam_search", "dvts", "particle_filtering", "auto"}) ||
			!slices.Equal(o.Verifiers, []string{"lutra-tiny-prm", "self", "logprob", "self_certainty"}) ||
			!slices.Equal(o.Presets, []string{"beam16x4", "bon8", "cert8", "sc16", "sc8"}) {
			t.Errorf("%s offers %+v", name, o)
		}
		if d := o.Defaults; *d.Temperature != 1 || d.MaxTokens != nil || d.ReasoningFormat != "auto" || *d.Scaling != "" {
			t.Errorf("%s has the defaults %+v", name, d)
		}
	}
	if c := cards["lutra-tiny-prm"]; c.Lutra != nil || c.Task != "reward" {
		t.Errorf("a reward model's card is %+v", c)
	}
	for _, method := range cards["mini"].Lutra.Methods { // each works as it is
		_, status, answer := f.askFor("mini", `,"test_time_scaling":{"method":"`+method+`"}`)
		if status != 200 {
			t.Errorf("%s: %d %s", method, status, answer)
		}
	}
}

func TestACardSaysHowAnswersAreSampledWhereARequestDoesNot(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for _, c := range []struct{ author, configured, want string }{
		{"", "", "temperature=1,top_k=0,top_p=1,min_p=0.05"},
		{"temperature=0.6,top_k=20", "", "temperature=0.6,top_k=20,top_p=1,min_p=0"},
		{"temperature=0.6,top_k=20", "top_k=3,top_p=0.9", "temperature=0.6,top_k=3,top_p=0.9,min_p=0"},
	} {
		var named [2]sampling.Config
		for i, text := range []string{c.author, c.configured} {
			if text != "" {
				named[i] = must(sampling.Parse(text))
			}
		}
		f.model.SampleAs(named[0], named[1], false)
		if err := f.Publish(registry.Served{Model: f.model}); err != nil {
			t.Fatal(err)
		}
		d := f.cards(t)["toy"].Lutra.Defaults
		got := sampling.Config{Temperature: d.Temperature, TopK: d.TopK, TopP: d.TopP, MinP: d.MinP}
		if got.String() != c.want {
			t.Errorf("author %q, configured %q: the card says %s, want %s", c.author, c.configured, got, c.want)
		}
	}
}

func TestACardWithoutAVerifierOffersEveryMethod(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.DefaultScaling, o.ReasoningFormat = "sc4", "none" })
	o := f.cards(t)["toy"].Lutra
	if o.Demo || o.MaxTurns != nil || !slices.Equal(o.Methods, []string{"none", "self_consistency", "best_of_n", "deepconf", "beam_search", "dvts", "particle_filtering", "auto"}) ||
		!slices.Equal(o.Verifiers, []string{"self", "logprob", "self_certainty"}) || !slices.Equal(o.Presets, []string{"beam16x4", "bon8", "cert8", "sc16", "sc8"}) {
		t.Errorf("it offers %+v", o)
	}
	if *o.Defaults.Scaling != "sc4" || o.Defaults.ReasoningFormat != "none" {
		t.Errorf("its defaults are %+v", o.Defaults)
	}
	for source, want := range map[string]bool{thinker: true, template.ChatML: false} {
		f.withTemplate(source)
		if err := f.Publish(registry.Served{Model: f.model}); err != nil {
			t.Fatal(err)
		}
		if got := f.cards(t)["toy"].Lutra.Thinking; got != want {
			t.Errorf("thinking is %v, want %v", got, want)
		}
	}
}
