package search_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

const apples = `{"type": "object", "properties": {"number_of_apples_in_each_box": {"enum": [12]}, "name_of_the_first_day": {"enum": ["Monday", "Sunday"]}},
	"required": ["number_of_apples_in_each_box", "name_of_the_first_day"], "additionalProperties": false}`

const answerOfApples = `{"number_of_apples_in_each_box": 12, "name_of_the_first_day": "Sunday"}`

// unspelled is a tokenizer that spells nothing, so that no token is forced.
type unspelled struct{ structure.Tokens }

func (unspelled) Encode([]int32, string, tokenizer.Options) []int32 { return nil }

// asFormat compiles a schema, with tokens forced or not.
func asFormat(t *testing.T, m *tts.Model, text string, forced bool) *structure.Format {
	t.Helper()
	g, err := schema.Compile([]byte(text), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spell := structure.TokensOf(m.Tokenizer)
	if !forced {
		spell = unspelled{spell}
	}
	return structure.New(g, structure.Vocabulary(m.Tokenizer), spell)
}

func TestForcedTextTakesFewerStepsAndChangesNothing(t *testing.T) {
	prompt := []int32{5}
	for _, logprobs := range []bool{false, true} {
		var steps [2]int64
		var said [2]string
		for i, forced := range []bool{false, true} {
			m := ttstest.Run(t, ttstest.Says(t, prompt, answerOfApples))
			format := asFormat(t, m, apples, forced)
			ask := func() {
				req := &tts.Request{Prompt: tts.Prompt{Tokens: prompt}, Rules: constrain.Rules{Format: format}}
				req.Sampling.Logprobs = logprobs
				r := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req))
				said[i] = fmt.Sprint(r.Text, r.Finish, r.Tokens, r.Usage)
				if r.Text[0] != answerOfApples {
					t.Fatalf("it says %q", r.Text[0])
				}
			}
			ask() // until the format is known
			before := m.Engine.Stats()
			ask()
			after := m.Engine.Stats()
			steps[i] = after.Steps - before.Steps
			if n := after.ForcedTokens - before.ForcedTokens; (n > 0) != forced {
				t.Errorf("%d tokens were forced", n)
			}
		}
		if said[0] != said[1] {
			t.Errorf("with forced tokens %s, without %s", said[1], said[0])
		}
		if steps[1] > steps[0]*2/3 {
			t.Errorf("%d steps, %d without forced tokens", steps[1], steps[0])
		}
	}
}

func TestForcedTextIsTheSameInASearchAndACrowd(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Eager(t), 300, batcher.DefaultOptions())
	format := asFormat(t, m, apples, true)
	for name, s := range strategies(t, m) {
		ask := func(seed uint64) *tts.Request {
			req := ttstest.Request(seed, 3)
			req.Format, req.Sampling.MaxTokens = format, 90
			return req
		}
		var alone, crowd [6][]string
		for i := range alone {
			_, alone[i] = candidates(t, s, ask(uint64(i)))
			for _, text := range alone[i] {
				if !strings.Contains(text, `"number_of_apples_in_each_box":`) || !strings.HasSuffix(text, "}") {
					t.Errorf("%s: it says %q", name, text)
				}
			}
		}
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() { _, crowd[i] = candidates(t, s, ask(uint64(i))) })
		}
		all.Wait()
		for i := range alone {
			if !slices.Equal(alone[i], crowd[i]) {
				t.Errorf("%s: seed %d says %q in a crowd, %q alone", name, i, crowd[i], alone[i])
			}
		}
	}
	if st := m.Engine.Stats(); st.ForcedTokens < 100 {
		t.Errorf("%d tokens were forced", st.ForcedTokens)
	}
}

func TestAStopStringEndsForcedText(t *testing.T) {
	prompt := []int32{5}
	m := ttstest.Run(t, ttstest.Says(t, prompt, answerOfApples))
	for _, c := range []struct {
		stop string
		most int
		want string
	}{{"apples", 0, `{"number_of_`}, {"first", 0, `{"number_of_apples_in_each_box": 12, "name_of_the_`}} {
		req := &tts.Request{Prompt: tts.Prompt{Tokens: prompt}, Rules: constrain.Rules{Format: asFormat(t, m, apples, true)}, Stop: []string{c.stop}}
		if r := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req)); r.Text[0] != c.want {
			t.Errorf("until %q it says %q, want %q", c.stop, r.Text[0], c.want)
		}
	}
	for most := 1; most < 12; most++ {
		req := &tts.Request{Prompt: tts.Prompt{Tokens: prompt}, Rules: constrain.Rules{Format: asFormat(t, m, apples, true)}}
		req.Sampling.MaxTokens = most
		r := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req))
		if r.Finish[0] != tts.FinishLength || !strings.HasPrefix(answerOfApples, r.Text[0]) {
			t.Errorf("with %d tokens it says %q, %s", most, r.Text[0], r.Finish[0])
		}
	}
}
