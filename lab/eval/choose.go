package eval

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/verify"
)

// examplesRule is the one rule that has to run what candidates wrote.
const examplesRule = "examples"

// rules choose among at least one candidate, and report whether the choice is right. As in a search, candidates that
// are cut are chosen only where all are; the first two rules are of the samples themselves.
var rules = []struct {
	name  string
	right func(drawn []ballot) bool
	// needs tells how many of the drawn have to be sampled at all, at least 1; nil: all.
	needs func(drawn []ballot) int
}{
	// Some candidate is right: what a check of the answers reaches.
	{name: "any", right: func(drawn []ballot) bool { return slices.ContainsFunc(drawn, func(b ballot) bool { return b.Right }) }},
	// A single sample.
	{name: "first", right: func(drawn []ballot) bool { return drawn[0].Right }, needs: func([]ballot) int { return 1 }},
	{name: "shortest", right: func(drawn []ballot) bool { return slices.MinFunc(Complete(drawn, isCut), byLength).Right }},
	// The highest score, which is the mean probability of the tokens where there was no verifier.
	{name: "score", right: func(drawn []ballot) bool { return slices.MaxFunc(Complete(drawn, isCut), byScore).Right }},
	// The most frequent answer, or code.
	{name: "vote", right: voted},
	// The same, of as many candidates as a server buys that does so in rounds.
	{name: "adaptive", right: voted, needs: bought},
	// The answer with the greatest sum of scores.
	{name: "weighted", right: func(drawn []ballot) bool { return elect(drawn, func(b ballot) float64 { return b.Score }).Right }},
	// The code that passes most of the examples in the question (Python); then as vote.
	{name: examplesRule, right: func(drawn []ballot) bool {
		most := slices.MaxFunc(drawn, func(a, b ballot) int { return cmp.Compare(a.passed, b.passed) }).passed
		return elect(slices.DeleteFunc(slices.Clone(drawn), func(b ballot) bool { return b.passed < most }), equally).Right
	}},
}

// voted reports whether the most frequent answer is right.
func voted(drawn []ballot) bool { return elect(drawn, equally).Right }

// bought returns how many of the candidates, in their order, a vote buys with adaptive's defaults.
func bought(drawn []ballot) int {
	plan := scaling.Plan{Method: scaling.SelfConsistency, N: len(drawn), Adaptive: scaling.Adaptive{On: true}}.WithDefaults(&scaling.Limits{})
	set := &plan.Adaptive
	for n := set.First; ; {
		votes := map[string]int{}
		for _, b := range drawn[:n] {
			if b.key != "" && !b.Cut {
				votes[b.key]++
			}
		}
		counts := append(slices.Collect(maps.Values(votes)), 0, 0)
		slices.SortFunc(counts, func(a, b int) int { return b - a }) // the most first
		if n == len(drawn) || set.Enough(counts[0], counts[1]) {
			return n
		}
		more := set.WorthVotes(counts[0], counts[1], len(drawn)-n)
		if more == 0 {
			return n
		}
		n += more
	}
}

// Rules returns the names of the rules by which Choose chooses.
func Rules() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// Choice counts the right choices of a rule in one problem.
type Choice struct {
	Model   string
	Rule    string
	N       int // candidates to choose among
	Problem int
	Right   float64 // share of the draws
	Needs   float64 // candidates that have to be sampled, the mean of the draws
}

// Choose chooses again among the candidates of a journal's record, without sampling. It draws candidates at random,
// draws times for each size, and skips sizes that the record has too few candidates for. All rules get the same
// draws, which are alike in every call. Errors are ctx's, and of rules that do not exist.
func Choose(ctx context.Context, r Record, names []string, sizes []int, draws int) ([]Choice, error) {
	for _, name := range names {
		if known := Rules(); !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no rule %.40q; there are %s", name, strings.Join(known, ", "))
		}
	}
	if r.Sample == nil || len(r.Candidates) == 0 {
		return nil, nil
	}
	all := make([]ballot, len(r.Candidates))
	for i, c := range r.Candidates {
		all[i] = ballot{Candidate: c, key: answerKey(c)}
	}
	if slices.Contains(names, examplesRule) {
		if err := runExamples(ctx, r.Question, all); err != nil {
			return nil, err
		}
	}
	var out []Choice
	for _, n := range sizes {
		if n > 0 && n <= len(all) {
			out = append(out, draw(all, names, n, draws, r)...)
		}
	}
	return out, nil
}

// draw draws n of a record's candidates, draws times, and counts how often each named rule is right.
func draw(all []ballot, names []string, n, draws int, r Record) []Choice {
	if n == len(all) && !slices.Contains(names, "first") && !slices.Contains(names, "adaptive") {
		draws = 1 // all draws have the same candidates, in whatever order
	}
	choices := make([]Choice, len(names))
	for i, name := range names {
		choices[i] = Choice{Model: r.Model, Rule: name, N: n, Problem: r.Problem}
	}
	for seed := range draws {
		random := rand.New(rand.NewPCG(uint64(seed), uint64(r.Problem)))
		drawn := make([]ballot, n)
		for i, at := range random.Perm(len(all))[:n] {
			drawn[i] = all[at]
		}
		for i, name := range names {
			rule, some := rules[slices.Index(Rules(), name)], drawn
			if rule.needs != nil {
				some = drawn[:rule.needs(drawn)]
			}
			choices[i].Needs += float64(len(some))
			if rule.right(some) {
				choices[i].Right++
			}
		}
	}
	for i := range choices {
		choices[i].Right /= float64(draws)
		choices[i].Needs /= float64(draws)
	}
	return choices
}

// ballot is a candidate that stands for its answer.
type ballot struct {
	Candidate
	key    string  // equal for equal answers; empty: there is none
	passed float32 // share of the question's examples
}

func equally(ballot) float64   { return 1 }
func byLength(a, b ballot) int { return cmp.Compare(len(a.Text), len(b.Text)) }
func byScore(a, b ballot) int  { return cmp.Compare(a.Score, b.Score) }

// elect returns the candidate whose answer has the greatest sum of weights; the higher score decides between equals.
// Candidates without an answer have no vote.
func elect(drawn []ballot, weight func(ballot) float64) ballot {
	drawn = Complete(drawn, isCut)
	sums := map[string]float64{}
	for _, b := range drawn {
		if b.key != "" {
			sums[b.key] += weight(b)
		}
	}
	return slices.MaxFunc(drawn, func(a, b ballot) int {
		return cmp.Or(cmp.Compare(sums[a.key], sums[b.key]), byScore(a, b))
	})
}

// Complete leaves out candidates that are cut, unless all are. As in a search, only the rest is chosen and votes.
func Complete[T any](all []T, cut func(T) bool) []T {
	if left := slices.DeleteFunc(slices.Clone(all), cut); len(left) > 0 {
		return left
	}
	return all
}

func isCut(b ballot) bool { return b.Cut }

// answerKey returns the key of a candidate's answer, or its code without white space where it has one.
func answerKey(c Candidate) string {
	if c.Answer != "" {
		return defaultReader.Key(c.Answer)
	}
	if m := fenced.FindStringSubmatch(c.Text); m != nil {
		return strings.Join(strings.Fields(m[1]), "")
	}
	return ""
}

// fenced is the first block of code in a text.
var fenced = regexp.MustCompile("(?s)```[a-z0-9]*\\n(.*?)```")

// runExamples notes which share of the examples in a question each candidate passes.
func runExamples(ctx context.Context, question string, all []ballot) error {
	m := fenced.FindStringSubmatch(question)
	if m == nil {
		return nil
	}
	tests := examples(m[1])
	if len(tests) == 0 {
		return nil
	}
	check, err := verify.New(ctx, &scaling.Verify{Language: "python", Tests: tests}, nil)
	if err != nil {
		return err
	}
	for i := range all {
		verdict, err := check.Check(ctx, python(m[1])+all[i].Text)
		if err != nil {
			return err
		}
		all[i].passed = verdict.Score
	}
	return nil
}

// maxExamples bounds the examples of a question that are run.
const maxExamples = 8

// The ways in which a docstring gives examples: a session of the interpreter, and an equation or an
// arrow behind a call.
var (
	session  = regexp.MustCompile(`(?m)^[ \t]*>>>[ \t]*(.+)\n[ \t]*([^>\s].*)$`)
	equation = regexp.MustCompile(`(?m)^[^>\n]*?\b(\w+\(.*\))[ \t]*(?:==>|=>|->|➞|==|=|returns|should return)[ \t]*([^\s>=].*?)[ \t]*$`)
	defined  = regexp.MustCompile(`(?m)^def (\w+)\(.*$`)
)

// examples returns tests of the examples in a function's docstring.
func examples(code string) []string {
	all := defined.FindAllStringSubmatch(code, -1)
	if len(all) == 0 {
		return nil
	}
	name := all[len(all)-1][1] // those before it are its helpers
	code = defined.ReplaceAllString(code, "")
	var tests []string
	add := func(call, value string) {
		if strings.Contains(call, name+"(") && len(tests) < maxExamples {
			tests = append(tests, fmt.Sprintf("assert (%s) == (%s)", call, value))
		}
	}
	for _, m := range session.FindAllStringSubmatch(code, -1) {
		add(m[1], m[2])
	}
	for _, m := range equation.FindAllStringSubmatch(code, -1) {
		add(m[1], m[2])
	}
	return tests
}

// ChoiceRow sums up what a rule chooses over the problems.
type ChoiceRow struct {
	Model    string  `json:"model"`
	Rule     string  `json:"rule"`
	N        int     `json:"n"`
	Problems int     `json:"problems"`
	Needs    float64 `json:"candidates"` // that have to be sampled, the mean
	Right    float64 `json:"right"`      // share, with the 95 % interval of a bootstrap over the problems
	Low      float64 `json:"ci_low"`
	High     float64 `json:"ci_high"`
	// Against is the same rule's difference from another; nil: not asked for.
	Against *ChoiceDifference `json:"against,omitempty"`
}

// ChoiceDifference compares a rule with another on the same draws.
type ChoiceDifference struct {
	Rule   string  `json:"rule"`
	Delta  float64 `json:"delta"` // of shares, with the 95 % interval of a paired bootstrap over the problems
	Low    float64 `json:"ci_low"`
	High   float64 `json:"ci_high"`
	Better int     `json:"better"` // problems that the rule has right more often
	Worse  int     `json:"worse"`
	P      float64 `json:"p"` // McNemar's, of Better against Worse
}

// Tally sums up choices by model, rule and number of candidates, in the order in which they first come, and compares
// the rules with that named; empty: with none.
func Tally(choices []Choice, against string) []ChoiceRow {
	type cell struct {
		model, rule string
		n           int
	}
	shares, needs := map[cell]map[int]float64{}, map[cell]float64{}
	var order []cell
	for _, c := range choices {
		at := cell{c.Model, c.Rule, c.N}
		if shares[at] == nil {
			shares[at] = map[int]float64{}
			order = append(order, at)
		}
		shares[at][c.Problem] = c.Right
		needs[at] += c.Needs
	}
	var rows []ChoiceRow
	for _, at := range order {
		mine, other := shares[at], shares[cell{at.model, against, at.n}]
		row := ChoiceRow{Model: at.model, Rule: at.rule, N: at.n, Problems: len(mine), Needs: needs[at] / float64(len(mine))}
		var rights, deltas []float64
		d := ChoiceDifference{Rule: against}
		for _, problem := range slices.Sorted(maps.Keys(mine)) {
			rights = append(rights, mine[problem])
			delta := mine[problem] - other[problem]
			deltas = append(deltas, delta)
			switch {
			case delta > 0:
				d.Better++
			case delta < 0:
				d.Worse++
			}
		}
		row.Right, row.Low, row.High = resample(rights)
		if other != nil && at.rule != against {
			d.Delta, d.Low, d.High = resample(deltas)
			d.P = McNemar(d.Better, d.Worse)
			row.Against = &d
		}
		rows = append(rows, row)
	}
	return rows
}

// resample returns the mean of values, at least one, with the 95 % percentile interval of a bootstrap. It is the same
// every time.
func resample(values []float64) (mean, low, high float64) {
	random := rand.New(rand.NewPCG(uint64(len(values)), 0))
	means := make([]float64, resamples)
	for i := range means {
		for range values {
			means[i] += values[random.IntN(len(values))]
		}
		means[i] /= float64(len(values))
	}
	slices.Sort(means)
	for _, v := range values {
		mean += v
	}
	return mean / float64(len(values)), means[resamples*25/1000], means[resamples*975/1000-1]
}

// ChoiceRows returns a table's cells, the heads first.
func ChoiceRows(list []ChoiceRow) [][]string {
	rows := [][]string{{"model", "rule", "n", "candidates", "problems", "right %", "95 % interval", "against", "points", "95 % interval", "better", "worse", "McNemar p"}}
	for _, r := range list {
		cells := []string{r.Model, r.Rule, strconv.Itoa(r.N), fmt.Sprintf("%.1f", r.Needs), strconv.Itoa(r.Problems), percent(r.Right), percent(r.Low) + " – " + percent(r.High)}
		if d := r.Against; d != nil {
			cells = append(cells, d.Rule, fmt.Sprintf("%+.1f", 100*d.Delta), fmt.Sprintf("%+.1f – %+.1f", 100*d.Low, 100*d.High),
				strconv.Itoa(d.Better), strconv.Itoa(d.Worse), fmt.Sprintf("%.4f", d.P))
		} else {
			cells = append(cells, "", "", "", "", "", "")
		}
		rows = append(rows, cells)
	}
	return rows
}
