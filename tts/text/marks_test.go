package text

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
)

// marksOf returns the marks of a template of ours.
func marksOf(t *testing.T, name string) Marks {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "toolcall", "testdata", "thoughts", name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.Parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	return MarksOf(tmpl)
}

func TestPartsOfAMessageAreToldByWhatTheTemplateWritesAroundThem(t *testing.T) {
	for name, want := range map[string]Marks{
		"channels":   {Begin: "<|channel|>analysis<|message|>", End: "<|end|><|start|>assistant", Before: "<|channel|>final<|message|>", After: "<|im_end|>"},
		"recipients": {Begin: "to=self<|message|>", End: "<|eom|><|start|>assistant", Before: "to=user<|message|>", After: "<|im_end|>"},
		"tags":       {Begin: "<|open|>think<|sep|>", End: "<|close|>think<|sep|>", Before: "<|open|>response<|sep|>", After: "<|close|>response<|sep|><|close|>message<|sep|><|im_end|>"},
		"glm":        {Begin: "<think>", End: "</think>"},
	} {
		if got := marksOf(t, name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestAnAnswerIsWithoutTheMarksAroundItHoweverItIsDivided(t *testing.T) {
	const calls = "<|open|>tools<|sep|>[]<|close|>tools<|sep|>"
	channels, tags := marksOf(t, "channels"), marksOf(t, "tags")
	for _, c := range []struct {
		marks                      Marks
		message, reasoning, answer string
	}{
		{channels, channels.Begin + "It rains." + channels.End + channels.Before + "Two < <|three.", "It rains.", "Two < <|three."},
		{channels, channels.Before + "Two.", "", "Two."},
		{channels, "<|channel|>", "", "<|channel|>"},
		{channels, "No mark at all.", "", "No mark at all."},
		{tags, tags.Begin + "It rains." + tags.End + tags.Before + "Two." + tags.After, "It rains.", "Two."},
		{tags, tags.Before + "Two.<|close|>response<|sep|><|close|>message<|sep|>", "", "Two."},
		{tags, tags.Before + "<|close|>response<|sep|>" + calls, "", calls},
		{tags, calls, "", calls},
	} {
		for at := range len(c.message) + 1 {
			thought := c.marks.NewThought(false, false)
			reasoning, answer := thought.Push(c.message[:at], false)
			more, rest := thought.Push(c.message[at:], true)
			if reasoning+more != c.reasoning || answer+rest != c.answer {
				t.Errorf("%q divided at %d: %q and %q, want %q and %q", c.message, at, reasoning+more, answer+rest, c.reasoning, c.answer)
			}
		}
		if got := c.marks.Answer(c.message, false); got != c.answer {
			t.Errorf("%q has the answer %q, want %q", c.message, got, c.answer)
		}
	}
}
