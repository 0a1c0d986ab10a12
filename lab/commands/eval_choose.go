package commands

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/eval"
)

func newEvalChoose() *cobra.Command {
	var rules []string
	var sizes []int
	var seeds int
	var compare, data string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "choose JOURNAL...",
		Short: "Choose again among the candidates of earlier evaluations",
		Long: `Reads what lutra-lab eval --out has written and chooses again among the candidates, without sampling. Of
a problem's candidates it draws n, the same ones for every rule, and draws --seeds times, so that a
row is the mean over the draws.

any: some candidate is right, which is what a check of the answers reaches. first: a single sample.
shortest: the shortest text. score: the highest score, which is the mean probability
of the tokens where there was no verifier. vote: the most frequent answer, or code. adaptive: the same,
of as many candidates as adaptive=true would sample. weighted: the answer with the greatest sum of scores. examples: the code that passes most examples of its question, then a vote.

JOURNAL is a directory of --out, or a file, which may be compressed by gzip.`,
		Example: `  lutra-lab eval choose report --n 1,4,8 --rules first,vote,score --compare vote`,
		Args:    someJournals,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if seeds < 1 || seeds > maxSeeds {
				return usage.Errorf("--seeds: %d is outside 1 to %d", seeds, maxSeeds)
			}
			for _, n := range sizes {
				if n < 1 || n > maxCandidates {
					return usage.Errorf("--n: %d is outside 1 to %d", n, maxCandidates)
				}
			}
			for _, rule := range append(rules, compare) {
				if rule != "" && !slices.Contains(eval.Rules(), rule) {
					return usage.Errorf("there is no rule %.40q; there are %s", rule, strings.Join(eval.Rules(), ", "))
				}
			}
			if compare != "" && !slices.Contains(rules, compare) {
				rules = append(rules, compare)
			}
			var problems []eval.Problem
			if data != "" {
				var err error
				if problems, _, err = loadProblems(data); err != nil {
					return err
				}
			}
			var list []eval.Choice
			for _, path := range paths {
				if info, err := os.Stat(path); err == nil && info.IsDir() {
					path = filepath.Join(path, "journal.jsonl")
				}
				err := eval.ReadJournal(path, func(_ eval.Setup, r eval.Record) error {
					if r.Sample != nil && r.Question == "" && r.Problem >= 0 && r.Problem < len(problems) {
						r.Question = problems[r.Problem].Question
					}
					some, err := eval.Choose(cmd.Context(), r, rules, sizes, seeds)
					list = append(list, some...)
					return err
				})
				if err != nil {
					return err
				}
			}
			if len(list) == 0 {
				return fmt.Errorf("no problem has so many candidates as --n says")
			}
			rows := eval.Tally(list, compare)
			slices.SortStableFunc(rows, func(a, b eval.ChoiceRow) int {
				return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.N, b.N))
			})
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), rows)
			}
			return output.Table(cmd.OutOrStdout(), eval.ChoiceRows(rows))
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&rules, "rules", []string{"first", "vote", "score", "weighted", "any"}, "`RULES`: "+strings.Join(eval.Rules(), ", "))
	f.IntSliceVarP(&sizes, "n", "n", []int{1, 4, 8}, "candidate counts")
	f.IntVar(&seeds, "seeds", 10, "draws of each problem's candidates")
	f.StringVar(&compare, "compare", "", "compare all others with this `RULE`, problem by problem")
	f.StringVar(&data, "data", "", "problems as JSON lines, a `FILE`, for journals that leave the questions out")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// maxSeeds bounds the draws of one problem.
const maxSeeds = 1000

// someJournals wants one argument or more.
func someJournals(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage.Errorf("JOURNAL is missing")
	}
	return nil
}
