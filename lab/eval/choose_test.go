package eval

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answers is a record of four candidates: the vote's answer is wrong, the highest score's and the shortest are right.
func answers() Record {
	return Record{Point: Point{Model: "m", Method: "best_of_n", N: 4}, Problem: 3, Sample: &Sample{Candidates: []Candidate{
		{Text: "so it is 5", Answer: "5", Score: 0.4},
		{Text: "7!", Answer: "7", Score: 0.7, Right: true},
		{Text: "it is 5.0", Answer: "5.0", Score: 0.2},
		{Text: "I do not know at all", Score: 0.3},
	}}}
}

func TestARuleChoosesAgainAmongAJournalsCandidates(t *testing.T) {
	want := map[string]float64{"any": 1, "shortest": 1, "score": 1, "vote": 0, "adaptive": 0, "weighted": 1, "examples": 0}
	got, err := Choose(t.Context(), answers(), slices.DeleteFunc(Rules(), func(r string) bool { return r == "first" }), []int{4}, 5)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for _, c := range got {
		if c.Right != want[c.Rule] || c.N != 4 || c.Problem != 3 || c.Model != "m" {
			t.Errorf("%+v, want %v right", c, want[c.Rule])
		}
	}
	// One candidate of four is right, so that a single sample is right in a quarter of many draws.
	first, err := Choose(t.Context(), answers(), []string{"first", "any", "vote"}, []int{1}, 1000)
	if err != nil || math.Abs(first[0].Right-0.25) > 0.05 {
		t.Errorf("single samples: %v, %v", first, err)
	}
	for _, c := range first {
		if c.Right != first[0].Right {
			t.Errorf("%s chooses otherwise among one candidate: %v", c.Rule, first)
		}
	}
	if got, err := Choose(t.Context(), answers(), Rules(), []int{5}, 1); got != nil || err != nil {
		t.Errorf("of four candidates five were drawn: %v, %v", got, err)
	}
	if _, err := Choose(t.Context(), answers(), []string{"best"}, []int{1}, 1); err == nil || !strings.Contains(err.Error(), `no rule "best"`) {
		t.Errorf("an unknown rule gave %v", err)
	}
}

func TestCandidatesThatAreCutAreChosenOnlyWhereAllAre(t *testing.T) {
	r := answers()
	r.Candidates[1].Cut = true // the one that is right
	for _, want := range []float64{0, 1} {
		got, err := Choose(t.Context(), r, []string{"shortest", "score", "weighted"}, []int{4}, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got {
			if c.Right != want {
				t.Errorf("%+v, want %v right", c, want)
			}
		}
		for i := range r.Candidates {
			r.Candidates[i].Cut = true
		}
	}
	r = Record{Sample: &Sample{Candidates: []Candidate{{Answer: "7", Right: true}, {Answer: "5", Cut: true}, {Answer: "5", Cut: true}}}}
	if got, err := Choose(t.Context(), r, []string{"vote", "adaptive"}, []int{3}, 5); err != nil || got[0].Right != 1 || got[1].Right != 1 {
		t.Errorf("answers that are cut have votes: %+v, %v", got, err)
	}
}

func TestAVoteInRoundsBuysNoMoreThanItNeeds(t *testing.T) {
	of := func(keys string) (drawn []ballot) {
		for _, k := range strings.Split(keys, "") {
			drawn = append(drawn, ballot{key: strings.TrimSpace(k)})
		}
		return drawn
	}
	for keys, want := range map[string]int{
		"a": 1, "ab": 2, // there are no more
		"aaabbbbb": 3, // further votes would gain less than they cost
		"abcdefgh": 8,
		"        ": 8, // none has an answer
	} {
		if got := bought(of(keys)); got > len(keys) || got != want {
			t.Errorf("of %q, %d are bought, want %d", keys, got, want)
		}
	}
	r := answers()
	r.Candidates = append(r.Candidates, r.Candidates[0], r.Candidates[0], r.Candidates[0], r.Candidates[0])
	got, err := Choose(t.Context(), r, []string{"adaptive", "vote", "first"}, []int{8}, 200)
	if err != nil || got[0].Needs < 3 || got[0].Needs >= 8 || got[1].Needs != 8 || got[2].Needs != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestExamplesOfAQuestionChooseItsCode(t *testing.T) {
	code := func(body string, right bool) Candidate {
		return Candidate{Text: "```python\ndef double(x):\n    return " + body + "\n```", Right: right}
	}
	r := Record{Sample: &Sample{
		Question:   "Write this Python function:\n\n" + python("def double(x):\n    \"\"\" Twice x.\n    >>> double(2)\n    4\n    double(3) ➞ 6\n    \"\"\"\n"),
		Candidates: []Candidate{code("x + 2", false), code("x + 2", false), code("2 * x", true)},
	}}
	got, err := Choose(t.Context(), r, []string{"vote", "examples"}, []int{3}, 1)
	if err != nil || got[0].Right != 0 || got[1].Right != 1 {
		t.Errorf("%v, %v; the vote is wrong, the examples are right", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Choose(ctx, r, []string{"examples"}, []int{3}, 1); err == nil {
		t.Error("examples ran after the end")
	}
	for code, want := range map[string][]string{
		"def f(x):\n  '''\n  >>> f(1)\n  2\n  '''\n":                   {"assert (f(1)) == (2)"},
		"def f(x):\n  '''For example, f(1) == 2\n  g(1) == 3'''\n":     {"assert (f(1)) == (2)"},
		"def g(x) -> int:\n  pass\n\ndef f(x) -> int:\n  ''' f(1) '''": nil,
		"x = 1": nil,
	} {
		if got := examples(code); !slices.Equal(got, want) {
			t.Errorf("examples(%q) = %q, want %q", code, got, want)
		}
	}
}

func TestChoicesAreTalliedAndCompared(t *testing.T) {
	var list []Choice
	for problem := range 20 {
		list = append(list,
			Choice{"m", "vote", 8, problem, map[bool]float64{true: 1}[problem < 10], 8},
			Choice{"m", "score", 8, problem, map[bool]float64{true: 1}[problem < 16], 4})
	}
	rows := Tally(list, "vote")
	if len(rows) != 2 || rows[0].Right != 0.5 || rows[0].Against != nil {
		t.Fatalf("%+v", rows)
	}
	d := rows[1].Against
	if d == nil || d.Better != 6 || d.Worse != 0 || math.Abs(d.Delta-0.3) > 1e-9 || d.Low <= 0 || d.High >= 0.6 || math.Abs(d.P-McNemar(6, 0)) > 1e-9 {
		t.Errorf("%+v", d)
	}
	if cells := ChoiceRows(rows); len(cells) != 3 || len(cells[1]) != len(cells[0]) || cells[2][8] != "+30.0" || cells[1][3] != "8.0" || cells[2][3] != "4.0" {
		t.Errorf("%q", cells)
	}
}

func TestACompressedJournalIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(f)
	w.Write([]byte("{\"data\":\"d\"}\n{\"model\":\"m\",\"problem\":1,\"candidates\":[{\"text\":\"a\"}]}\n"))
	w.Close()
	f.Close()
	var got []Record
	err = ReadJournal(path, func(s Setup, r Record) error {
		if s.Data != "d" {
			t.Errorf("setup %+v", s)
		}
		got = append(got, r)
		return nil
	})
	if err != nil || len(got) != 1 || got[0].Candidates[0].Text != "a" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The rows that no program has to run for: the journals have no questions.
func TestTheEvidenceOfAPublicModelIsWhatItsJournalsGive(t *testing.T) {
	for journal, want := range map[string]struct {
		table string
		rules []string
		rows  int
		more  string // a journal of the same problems: with its candidates there are 16
	}{
		"humaneval-qwen2.5-coder-1.5b":           {"tts-humaneval.csv", []string{"first", "vote", "score", "shortest", "any"}, 14, ""},
		"gsm-symbolic-qwen2.5-coder-1.5b":        {"tts-gsm-symbolic.csv", []string{"first", "vote", "adaptive", "score", "weighted", "shortest", "any"}, 19, ""},
		"chain-sum-qwen2.5-coder-1.5b":           {"tts-chain-sum-qwen2.5-coder-1.5b.csv", []string{"first", "vote", "score", "weighted", "shortest", "any"}, 22, "chain-sum-qwen2.5-coder-1.5b-seed10001"},
		"chain-sum-qwen2.5-coder-1.5b-seed10001": {"tts-chain-sum-qwen2.5-coder-1.5b-seed10001.csv", []string{"first", "vote", "score", "weighted", "shortest", "any"}, 16, ""},
		"chain-sum-smollm2-135m":                 {"tts-chain-sum-smollm2-135m.csv", []string{"first", "vote", "score", "weighted", "shortest", "any"}, 22, ""},
	} {
		t.Run(journal, func(t *testing.T) {
			made := rowsOfJournal(t, journal, want.more, want.rules)
			file, err := os.Open("../../docs/data/" + want.table)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			table := csv.NewReader(file)
			table.Comment = '#'
			rows, err := table.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, row := range rows[1:] {
				if row[0] == "examples" {
					continue
				}
				compared++
				if want := made[row[0]+" "+row[1]]; !slices.Equal(row[2:], want) {
					t.Errorf("%s, %s: the document has %q, the journal gives %q", row[0], row[1], row[2:], want)
				}
			}
			if compared != want.rows {
				t.Errorf("%d rows were compared", compared)
			}
		})
	}
}

// rowsOfJournal returns the columns of a table of evidence, by rule and number of candidates. more names a second
// journal, whose candidates count beside the first's in choices among 16; empty: there is none.
func rowsOfJournal(t *testing.T, journal, more string, rules []string) map[string][]string {
	t.Helper()
	var list []Choice
	second := map[int][]Candidate{}
	if more != "" {
		if err := ReadJournal("testdata/"+more+".jsonl.gz", func(_ Setup, r Record) error {
			second[r.Problem] = r.Candidates
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	greedy, problems := 0, 0
	err := ReadJournal("testdata/"+journal+".jsonl.gz", func(_ Setup, r Record) error {
		if r.Plain() {
			problems++
			if r.Right {
				greedy++
			}
		}
		some, err := Choose(t.Context(), r, rules, []int{1, 2, 4, 8, 16}, 100)
		for _, c := range some {
			if c.Rule == "score" && c.N == r.N && (c.Right == 1) != r.Right {
				t.Errorf("problem %d: the search's choice was right: %t; the same rule's is now: %v", r.Problem, r.Right, c.Right)
			}
		}
		list = append(list, some...)
		if err != nil || r.Plain() || more == "" {
			return err
		}
		both := *r.Sample
		both.Candidates = slices.Concat(r.Candidates, second[r.Problem])
		r.Sample = &both
		some, err = Choose(t.Context(), r, rules, []int{16}, 100)
		list = append(list, some...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	low, high := Wilson(greedy, problems)
	made := map[string][]string{"greedy 1": {"1.0", percent(float64(greedy) / float64(problems)), percent(low), percent(high), "", "", ""}}
	for _, r := range Tally(list, "vote") {
		row := []string{fmt.Sprintf("%.1f", r.Needs), percent(r.Right), percent(r.Low), percent(r.High), "", "", ""}
		if d := r.Against; d != nil && r.N > 1 {
			row[4], row[5], row[6] = percent(d.Delta), percent(d.Low), percent(d.High)
		}
		made[fmt.Sprint(r.Rule, " ", r.N)] = row
	}
	return made
}
