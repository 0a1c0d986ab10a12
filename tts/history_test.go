package tts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
	. "github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// places returns what messages of talk say.
func places(messages []template.Message) string {
	var list []string
	for _, m := range messages {
		list = append(list, m.Content.(string))
	}
	return strings.Join(list, " ")
}

func TestWholeExchangesAreLeftOut(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{})
	for _, c := range []struct {
		roles string
		turns int
		want  string
	}{
		{"u", 1, "0"},
		{"uau", 0, "0 1 2"},
		{"uau", 1, "2"},
		{"uau", 2, "0 1 2"},
		{"suauau", 2, "0 3 4 5"},
		{"auau", 2, "0 1 2 3"},
		{"auau", 1, "3"},
		{"uatatauau", 2, "6 7 8"},
		{"uatatauau", 3, "0 1 2 3 4 5 6 7 8"},
		{"uusuau", 1, "2 5"},
		{"uuauua", 1, "3 4 5"},
		{"suasusa", 1, "0 3 4 5 6"},
		{"aaa", 1, "0 1 2"},
	} {
		m.MaxTurns = c.turns
		p := &Prompt{Messages: ttstest.Talk(c.roles)}
		got, err := m.Prepare(t.Context(), p, 0)
		if err != nil {
			t.Fatal(err)
		}
		if places(got.Messages) != c.want || got.Dropped != len(p.Messages)-len(got.Messages) {
			t.Errorf("%s in %d turns: %q is left and %d dropped, want %q", c.roles, c.turns, places(got.Messages), got.Dropped, c.want)
		}
	}
}

func TestTruncationLeavesOutAsFewExchangesAsItMust(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{Context: 256})
	long := strings.Repeat("word ", 12)
	for _, turns := range []int{1, 2, 5, 9, 30} {
		for _, maxTokens := range []int{0, 1, 40, 128, 250} {
			p := Prompt{Truncate: true, Messages: ttstest.Talk("s" + strings.Repeat("ua", turns-1) + "u")}
			for i := range p.Messages {
				p.Messages[i].Content = p.Messages[i].Content.(string) + long[:len(long)*(i%3)/3]
			}
			req := &Request{Prompt: p, Sampling: sampling.Params{MaxTokens: maxTokens}}
			got, err := m.PrepareRequest(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			room := 256 - m.Reserve(maxTokens)
			// One by one, the oldest first.
			want, starts := p, Exchanges(p.Messages)
			for n := 0; ; n++ {
				if n > 0 {
					want.Messages = From(p.Messages, starts[n])
				}
				if ids, _ := m.Rendered(t.Context(), &want, 1000); len(ids.Tokens) <= room || n == len(starts)-1 {
					break
				}
			}
			if places(got.Messages) != places(want.Messages) || got.Dropped != len(p.Messages)-len(want.Messages) {
				t.Errorf("%d turns for %d tokens: %d of %d messages are left, want %d", turns, maxTokens, len(got.Messages), len(p.Messages), len(want.Messages))
			}
		}
	}
}

func TestWhatDoesNotFitIsRefusedWithoutTruncationAndInOneExchange(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{Context: 64})
	huge := template.Message{Role: "user", Content: strings.Repeat("word ", 1000)}
	small := template.Message{Role: "user", Content: "Hi"}
	reply := template.Message{Role: "assistant", Content: "Well."}
	for _, c := range []struct {
		messages []template.Message
		truncate bool
		fits     bool
	}{
		{[]template.Message{huge, reply, small}, false, false},
		{[]template.Message{huge, reply, small}, true, true},
		{[]template.Message{small, reply, huge}, true, false},
		{[]template.Message{{Role: "system", Content: huge.Content}, small, reply, small}, true, false},
	} {
		req := &Request{Prompt: Prompt{Messages: c.messages, Truncate: c.truncate}}
		got, err := m.PrepareRequest(t.Context(), req)
		var long *ContextError
		if c.fits != (err == nil) || err != nil && (!errors.As(err, &long) || long.Part != PartMessages) {
			t.Errorf("%d messages, truncate %v: %v, %v", len(c.messages), c.truncate, got, err)
		}
	}
}
