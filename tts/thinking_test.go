package tts_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	. "github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/text"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// saying is a strategy that says these parts, the last of which ends it.
type saying struct {
	Strategy // nil: it is only run
	parts    []string
	thinking bool
}

func (s saying) Run(context.Context, *Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !yield(Event{What: Opening{Thinking: s.thinking}}, nil) {
			return
		}
		for i, part := range s.parts {
			if !yield(Event{What: Text{Text: part, Last: i == len(s.parts)-1}}, nil) {
				return
			}
		}
	}
}

// divided collects what Thoughts makes of s.
func divided(t *testing.T, m *Model, s saying) (reasoning, text string) {
	t.Helper()
	for e, err := range Filtered(s.Run(t.Context(), &Request{}), m.Thoughts(1)) {
		if err != nil {
			t.Fatal(err)
		}
		d := ttstest.Flatten(e)
		if d.Reasoning != "" && text != "" && !m.ThoughtMarks().Again {
			t.Errorf("%q: reasoning %q after the answer has begun", s.parts, d.Reasoning)
		}
		reasoning, text = reasoning+d.Reasoning, text+d.Text
	}
	return reasoning, text
}

func TestThoughtsAreSetApartHoweverTheTextIsCut(t *testing.T) {
	channel, err := template.Parse("{# <|channel>thought <channel|> #}" + template.ChatML)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says            string
		thinking        bool
		reasoning, text string
	}{
		{"Answer: 12", false, "", "Answer: 12"},
		{"<think>\nWhat is 3*4?\n\nIt is 12.\n</think>\n\nAnswer: 12\n", false, "What is 3*4?\n\nIt is 12.", "Answer: 12\n"},
		{" \n<think>a</think>b</think>c<think>d</think>", false, "a", "b</think>c<think>d</think>"},
		{"What is 3*4?\n</think>\n\nAnswer: 12", true, "What is 3*4?", "Answer: 12"},
		{"<think>\n\n</think>\n\nAnswer: 12", false, "", "Answer: 12"},
		{"<think>a < b </thin k", false, "a < b </thin k", ""},
		{"<think>cut off </thi", false, "cut off </thi", ""},
		{"<think>cut off \n", false, "cut off", ""},
		{"  <thick>no thought</thick>", false, "", "  <thick>no thought</thick>"},
		{" <thi", false, "", " <thi"},
		{" \n ", false, "", " \n "},
		{"<think>日本 </think> é\n x ", false, "日本", "é\n x "},
		{"", true, "", ""},
		{"<|channel>thought\nWhat is 3*4?\n<channel|>Answer: 12", false, "What is 3*4?", "Answer: 12"},
		{"<|channel>thought\n<channel|>12 < 13, <|chan.<|channel>thought\n<channel|>", false, "", "12 < 13, <|chan."},
		{"I look. <|channel>thought\nHm.<channel|>Yes.<channel|>", false, "Hm.", "I look. Yes."},
		{"Hm.<channel|>\nYes. <cha", true, "Hm.", "Yes. <cha"},
		{"<|channel>thought\ncut off <chan", false, "cut off <chan", ""},
	} {
		m := &Model{}
		if strings.Contains(c.says, "chan") {
			m.Template = channel
		}
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 1))
			var parts []string
			rest := c.says
			for len(rest) > 0 && seed > 0 {
				n := min(len(rest), r.IntN(6))
				parts, rest = append(parts, rest[:n]), rest[n:]
			}
			parts = append(parts, rest)
			reasoning, text := divided(t, m, saying{parts: parts, thinking: c.thinking})
			if reasoning != c.reasoning || text != c.text {
				t.Fatalf("%q is divided into %q and %q, want %q and %q", parts, reasoning, text, c.reasoning, c.text)
			}
		}
	}
}

func TestAPromptThatBeginsAThoughtIsKnown(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	for text, want := range map[string]bool{
		"Hi": false, "Hi <think>": true, "Hi\n<think>\n\n": true, "<think>\n\n</think>\n\n": false, "": false,
	} {
		prompt, err := m.Encode(t.Context(), &Prompt{Text: "Q: " + text})
		if err != nil {
			t.Fatal(err)
		}
		if m.ThinksAfter(prompt) != want {
			t.Errorf("thinks(%q) = %t, want %t", text, !want, want)
		}
	}
}

func TestAnAnswerIsWhatFollowsTheThought(t *testing.T) {
	for _, c := range []struct {
		text      string
		inThought bool
		want      string
	}{
		{"Answer: 12", false, "Answer: 12"},
		{"\n<think>Answer: 3?</think>\nAnswer: 12", false, "\nAnswer: 12"},
		{"Answer: 3?</think>Answer: 12", true, "Answer: 12"},
		{"<think>perhaps \\boxed{3}", false, ""},
		{"perhaps \\boxed{3}", true, ""},
		{"", false, ""},
		{"Is <think> a mark?", false, "Is <think> a mark?"},
	} {
		if got := text.Think.Answer(c.text, c.inThought); got != c.want {
			t.Errorf("Answer(%q, %t) = %q, want %q", c.text, c.inThought, got, c.want)
		}
	}
}

func TestThinkingIsSwitchedUnlessThePromptSaysItself(t *testing.T) {
	var p Prompt
	p.SwitchThinking(true)
	p.SwitchThinking(false)
	if p.Extra["enable_thinking"] != true {
		t.Errorf("variables %v", p.Extra)
	}
}
