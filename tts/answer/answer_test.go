package answer

import (
	"strings"
	"testing"
)

func reader(t *testing.T, extract, normalize string) *Reader {
	t.Helper()
	r, err := Rule{extract, normalize}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnswersAreFoundWhereTheRuleSays(t *testing.T) {
	for _, c := range []struct{ extract, text, want string }{
		{"", "7*8=56.\nAnswer: 56", "56"},
		{"auto", `so \boxed{3} and then $\boxed{\frac{1}{2}}$. Answer: 4`, `\frac{1}{2}`},
		{"auto", "The answer is 12. That was easy 3.", "12"},
		{"auto", "**Answer:** 9 apples", "9 apples"},
		{"auto", "I count 3 cats and 4 dogs", "4"},
		{"auto", "no idea", ""},
		{"auto", "", ""},
		{"boxed", `\boxed{ {a}\}b } tail`, `{a}\}b`},
		{"boxed", `\boxed{7} \boxed{open`, "7"},
		{"boxed", "Answer: 4", ""},
		{"boxed", `\boxed{}`, ""},
		{"answer", "Answer:\nAnswer: 5\nAnswer:   ", "5"},
		{"answer", "answers: 5", ""},
		{"number", "7-2", "2"},
		{"number", "it is -3.", "-3"},
		{"number", "$1,234.50 in all", "$1,234.50"},
		{"number", "about 3/4 of it", "3/4"},
		{"number", "12,50 and", "50"},
		{"number", "45 %", "45 %"},
		{"choice", "A or B? I say (C), not D", "C"},
		{"choice", "The answer is **B**", "B"},
		{"choice", "A bird; B", "B"},
		{"choice", "F", ""},
		{"line", "one\ntwo\n\n", "two"},
		{"line", " \n ", ""},
		{`regex:x=(\d+)`, "x=1 x=22", "22"},
		{`regex:\d+`, "1 22", "22"},
		{`regex:z`, "1 22", ""},
		{"json:/a/1", "```json\n{\"a\":[1,\"two\"]}\n``` {\"b\":3}", "two"},
		{"json:/a~1b", `{"a/b":{"c":1}}`, `{"c":1}`},
		{"json:", `text [1, 2]`, "[1,2]"},
		{"json:/x", `{"x": 1.50}`, "1.50"},
		{"json:/x", strings.Repeat("{", 10000), ""},
	} {
		got, ok := reader(t, c.extract, "none").Read(c.text)
		if got.Text != c.want || ok != (c.want != "") {
			t.Errorf("Read(%q, %q) = %q, %v, want %q", c.extract, c.text, got.Text, ok, c.want)
		}
	}
}

func TestEqualAnswersHaveOneKey(t *testing.T) {
	for _, group := range [][]string{
		{"1/2", "0.5", ".50", "50%", `\frac{1}{2}`, `\dfrac12`, "2/4", "$0.50", `$\frac{1}{2}$`, "5e-1", `50\%`, "x = 1/2", "1/2."},
		{"1234", "1,234", "1,234.0", "1 234", "$1,234.00", `1{,}234`, "1234 apples", "1.234e3", `1.234 \times 10^3`, "1.234×10^{3}", "+1234", "**1234**", "#1234", "## 1234"},
		{"-3", "−3", "-3.0", "-6/2", `-\frac{6}{2}`, "-3 degrees", `-3^\circ`},
		{"7/4", "1 3/4", `1\frac{3}{4}`, "1.75", "175%", "1.75 cm", "1.75cm"},
		{"0", "-0", "0.00", "0%", "0/5"},
		{"B", "(B)", "b", "(b)", `\text{B}`, "B."},
		{"Monday", "monday", " MONDAY. ", `\text{Monday}`},
		{"(1/2, 3)", "(0.5,3.0)", `\left(0.50, 3\right)`},
		{"2x", "2x."},
		{"1/0"}, {"x"}, {"[1,2]"}, {"(1,2)"}, {"50"}, {"1,23"}, {"12,345,6"},
		{strings.Repeat("9", 200)}, {strings.Repeat("9", 199)}, {"1e999"},
	} {
		r := reader(t, "line", "")
		for _, s := range group {
			if got, want := r.Key(s), r.Key(group[0]); got != want || got == "" {
				t.Errorf("Key(%q) = %q, want %q as for %q", s, got, want, group[0])
			}
		}
	}
}

func TestDifferentAnswersHaveDifferentKeys(t *testing.T) {
	r := reader(t, "", "")
	seen := map[string]string{}
	for _, s := range []string{"1/2", "1/3", "50", "-50", "5", "0", "5x", "b", "monday", "(1,2)", "[1,2]", "(2,1)", "1/0", "1e999", "none", `\sqrt{2}`, `\sqrt{3}`} {
		k := r.Key(s)
		if other, ok := seen[k]; ok {
			t.Errorf("Key(%q) = Key(%q) = %q", s, other, k)
		}
		seen[k] = s
	}
}

func TestTextAndNoneCompareAsTheySay(t *testing.T) {
	text, none := reader(t, "line", "text"), reader(t, "line", "none")
	if text.Key(" The  Answer! ") != text.Key("the answer") || text.Key("1/2") == text.Key("0.5") {
		t.Error("text: want case and white space ignored, values not read")
	}
	if none.Key("A") == none.Key("a") {
		t.Error("none: want case kept")
	}
}

func TestBadRulesAreRefused(t *testing.T) {
	for _, r := range []Rule{{Extract: "magic"}, {Extract: "regex:("}, {Extract: "json:x"}, {Extract: "boxed:1"}, {Normalize: "loud"}, {Extract: "regex:" + strings.Repeat("a", 600)},
		{Extract: `regex:(\pL{1000})(\pL{1000})`}, {Extract: "json:/" + strings.Repeat("a", 600)}} {
		if _, err := r.Compile(); err == nil {
			t.Errorf("Compile(%+v) gave no error", r)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`\boxed{\frac{1}{2}}`, "Answer: 1,234.5e-7%", `{"a":[1]}`, "(1,2)", "1 2/3 cm", `-\frac{-1}{0}`, "A) B) (C)"} {
		f.Add(s, "auto")
	}
	for _, s := range []string{"Answer:#", "Answer: x=#1/0", "Answer: =#2"} {
		f.Add(s, "")
	}
	f.Add("x=1", `regex:x=(\d+)`)
	f.Add(`{"a":1}`, "json:/a")
	f.Fuzz(func(t *testing.T, text, extract string) {
		r, err := Rule{Extract: extract}.Compile()
		if err != nil {
			return
		}
		a, ok := r.Read(text)
		if !ok {
			return
		}
		again, _ := r.Read(text)
		if again != a {
			t.Fatalf("Read(%q) = %v, then %v", text, a, again)
		}
		if v, isNumber := strings.CutPrefix(a.Key, "#"); isNumber && len(v) < maxDigits/2 && r.Key(v) != a.Key {
			t.Fatalf("Key(%q) = %q, want %q: a value's own spelling has its key", v, r.Key(v), a.Key)
		}
	})
}
