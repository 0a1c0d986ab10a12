package eval

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
)

func TestEachKindOfDataIsRead(t *testing.T) {
	got, err := Load(strings.NewReader(`{"question": "How many?", "answer": "3 and 4 make 3+4=<<3+4=7>>7.\n#### 1,007"}

{"problem": "Half of $1$?", "solution": "...", "answer": "\\frac{1}{2}", "subject": "Algebra", "level": 2}
{"question": "Eggs?", "answer": 84, "steps": ["12*7=84."]}`))
	want := []Problem{{"How many?", "1,007", nil}, {"Half of $1$?", `\frac{1}{2}`, nil}, {"Eggs?", "84", nil}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Load = %+v, %v, want %+v", got, err, want)
	}
}

func TestAFunctionIsRightIfItPassesItsTest(t *testing.T) {
	problems, err := Load(strings.NewReader(`{"prompt": "from typing import List\n\ndef twice(x: List[int]):\n    \"\"\"Doubles.\"\"\"\n", "entry_point": "twice", "test": "def check(f):\n    assert f([1, 2]) == [2, 4]\n"}`))
	if err != nil || !strings.Contains(problems[0].Question, "def twice") {
		t.Fatalf("Load = %+v, %v", problems, err)
	}
	for text, want := range map[string]bool{
		"Here it is:\n```python\ndef twice(x: List[int]):\n    return [2 * i for i in x]\n```\nCall it:\n```python\nprint(twice([1]))\n```\nwhich prints\n```\n[2]\n```": true,
		"def twice(x):\n    return x + x": false,
		"I do not know.":                  false,
	} {
		var r Record
		if err := r.grade(t.Context(), problems[0], Solution{Text: text, Candidates: []Candidate{{Text: text}}}); err != nil {
			t.Fatal(err)
		}
		if r.Right != want || *r.Any != want || r.Candidates[0].Right != want {
			t.Errorf("%q is right: %t, want %t", text, r.Right, want)
		}
	}
}

func TestTheEmbeddedTestSetIsReadWhole(t *testing.T) {
	got, err := Load(strings.NewReader(embedded.TestSet()))
	if err != nil || len(got) != 500 || got[0].Answer != "5" {
		t.Fatalf("%d problems, error %v", len(got), err)
	}
}

func TestBadLinesAreNamed(t *testing.T) {
	good := `{"question": "q", "answer": 1}` + "\n"
	for _, c := range []struct{ data, want string }{
		{"", "no problems"},
		{"\n \n", "no problems"},
		{good + "{", "line 2"},
		{good + "\n" + good + "[1]", "line 4"},
		{`"text"`, "line 1"},
		{`{"answer": 1}`, `line 1: neither "question" nor "problem"`},
		{`{"question": "  ", "answer": 1}`, `neither`},
		{`{"question": 7, "answer": 1}`, "line 1"},
		{`{"question": "a", "problem": "b", "answer": 1}`, "both"},
		{`{"question": "q"}`, `no "answer"`},
		{`{"question": "q", "answer": null}`, `no "answer"`},
		{`{"question": "q", "answer": true}`, "neither a text nor a number"},
		{`{"question": "q", "answer": {"x": 1}}`, "neither a text nor a number"},
		{`{"question": "q", "answer": ""}`, "empty"},
		{`{"question": "q", "answer": "think #### "}`, "empty"},
		{`{"entry_point": "f", "prompt": "def f():"}`, `"prompt" or "test"`},
		{good + `{"question": "` + strings.Repeat("x", maxLine) + `"}`, "line 2 is longer"},
		{strings.Repeat("[", 100000), "line 1"},
		{strings.Repeat(`{"question":"q","answer":1}`+"\n", maxProblems+1), "more than"},
	} {
		_, err := Load(strings.NewReader(c.data))
		if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Load(%.40q) gave the error %v, want %q in it", c.data, err, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{`{"question": "q", "answer": "#### 7"}`, `{"problem": "p", "answer": 1e9}`, "\n\n{", `{"Question": "q", "ANSWER": "\ud800"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		problems, err := Load(strings.NewReader(data))
		if err == nil && len(problems) == 0 {
			t.Fatal("no problems and no error")
		}
		for _, p := range problems {
			if strings.TrimSpace(p.Question) == "" || p.Program == nil && defaultReader.Key(p.Answer) == "" {
				t.Fatalf("%+v was let through", p)
			}
		}
	})
}
