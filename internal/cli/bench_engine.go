package cli

import "github.com/spf13/cobra"

func newBenchEngine() *cobra.Command {
	o, asJSON := defaultEngineOptions(), false
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure prefill and decode through the whole engine",
		Long: `Like llama-bench, with scheduling and sampling included: pp512 computes a prompt of
512 tokens, tg64 decodes 64 tokens, sp64 does so with speculation, cp64 too, of a
text that repeats itself, dr64 of one that the --draft-model always guesses right,
par8 decodes 64 tokens in each of 8 sequences at once, tg64@d4096 and par8@d512 do so
after 4096 and 512 tokens that are not counted. --shape builds a model of
random ternary weights; speed does not depend on their values.

--compare runs another engine's command after each round of ours and prints the
ratios of neighbouring runs. It reads what llama-bench and llama-batched-bench
print as JSON, CSV or a table; for other programs --compare-pattern is a regular
expression with the groups (?P<test>...) and (?P<value>...), tokens a second.

--profile says where the time of each test goes, beside what this machine allows.`,
		Example: `  lutra bench engine --model model.gguf
  lutra bench engine --shape falcon3-1b --threads 2 --tests pp512,tg64,par32 --json
  lutra bench engine --model m.gguf --tests pp512,tg64 --compare 'llama.cpp=llama-bench -m m.gguf -p 512 -n 64 -r 1 -o jsonl'
  lutra bench engine --model m.gguf --tests tg64,par32 --profile`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := benchEngine(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	sourceFlags(f, &o.benchSource)
	f.IntVar(&o.threads, "threads", 0, "compute threads (default: one a physical core)")
	f.IntVarP(&o.reps, "reps", "r", o.reps, "repetitions a test, after one that is not counted; with --compare, rounds")
	f.StringSliceVar(&o.tests, "tests", o.tests, "tests to run")
	f.IntVar(&o.parTokens, "par-tokens", o.parTokens, "tokens a sequence of par<N>")
	f.StringVar(&o.draft, "draft-model", "", "GGUF `FILE` or an embedded model's name: a model that guesses in the tests with speculation")
	f.StringVar(&o.speculation, "speculation", o.speculation, "of sp<N>, cp<N> and dr<N>: auto or a number")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&o.profile, "profile", false, "print the time of each kind of kernel")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a profile of the runs to `FILE`, for go tool pprof")
	compareFlags(f, &o.peerOptions)
	cmd.MarkFlagsMutuallyExclusive("profile", "compare")
	return cmd
}
