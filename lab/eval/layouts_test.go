package eval

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/tts"
)

func TestTheOriginalLayoutsOfTheDataSetsAreRead(t *testing.T) {
	for name, want := range map[string][]string{
		"gsm8k.jsonl":   {"84", "1,250"},
		"math500.jsonl": {`\left( 3, \frac{\pi}{2} \right)`, `\text{Evelyn}`},
		"math.jsonl":    {`\sqrt{2}`},
	} {
		f, err := os.Open(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		problems, err := Load(f)
		f.Close()
		if err != nil || len(problems) != len(want) {
			t.Errorf("%s: %+v, %v", name, problems, err)
			continue
		}
		for i, p := range problems {
			if p.Question == "" || p.Answer != want[i] {
				t.Errorf("%s: %+v, want the answer %q", name, p, want[i])
			}
		}
	}
}

func TestSolutionsAreGradedByWhatTheirAnswersMean(t *testing.T) {
	for _, c := range []struct {
		want, text string
		right      bool
	}{
		{`\left( 3, \frac{\pi}{2} \right)`, `So the point is $\boxed{(3, \pi/2)}$.`, true},
		{`\left( 3, \frac{\pi}{2} \right)`, `So the point is $\boxed{(3, \pi/3)}$.`, false},
		{`\text{Evelyn}`, `**Answer:** Evelyn`, true},
		{`10\%`, `\boxed{10}`, true},
		{`10`, `\boxed{10\%}`, true},
		{`10\%`, `\boxed{0.1}`, true},
		{`10`, `\boxed{0.1}`, false},
		{`1,250`, "He lacks $1250.\n#### 1250", true},
		{`18`, `The final answer is: $\boxed{18}$. I hope it is correct.`, true},
		{`3\sqrt{13}`, `it is \boxed{\sqrt{117}}`, true},
		{`84`, "", false},
	} {
		var r Record
		if err := r.grade(t.Context(), Problem{Question: "q", Answer: c.want}, Solution{Text: c.text, Candidates: []Candidate{{Text: c.text}}}); err != nil {
			t.Fatal(err)
		}
		if r.Right != c.right || *r.Any != c.right {
			t.Errorf("%q for %q is right: %t, want %t", c.text, c.want, r.Right, c.right)
		}
	}
}

func TestAModelThatCannotSwitchThinkingIsNotAskedTo(t *testing.T) {
	m := Searcher{Model: &tts.Model{}} // without a template
	_, err := Local(map[string]Searcher{"m": m}, Asking{Thinking: new(true)})(context.Background(), Point{Model: "m", Method: Single, N: 1}, Question{Text: "q"})
	if err == nil || !strings.Contains(err.Error(), "cannot switch thinking") {
		t.Errorf("error %v", err)
	}
}
