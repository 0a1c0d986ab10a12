package commands

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/lab/bench"
)

func newBenchEngine() *cobra.Command {
	o, asJSON := bench.DefaultEngineOptions(), false
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure prefill and decode through the whole engine",
		Long: `Like llama-bench, with scheduling and sampling included:

  pp512       compute a prompt of 512 tokens
  tg64        decode 64 tokens
  sp64        decode with speculation
  cp64        decode with speculation a text that repeats itself
  dr64        decode with speculation a text that --draft-model always guesses right
  par8        decode 64 tokens in each of 8 sequences at once
  st8         likewise, held to the JSON Schema in --schema
  dt8         decode 64 tokens of given texts in each of 8 sequences
  mtp8        likewise with the model's MTP layer, of whose guesses --acceptance are right
  tg64@d4096  decode after 4096 tokens that are not counted; also par8@d512

--shape builds a model of random ternary weights; speed does not depend on their
values.

--compare runs another engine's command after each round of ours and prints the
ratios of neighbouring runs. It reads what llama-bench and llama-batched-bench
print as JSON, CSV or a table; for other programs --compare-pattern is a regular
expression with the groups (?P<test>...) and (?P<value>...), tokens a second.

--profile prints where the time of each test goes, and what this machine allows.`,
		Example: `  lutra-lab bench engine --model model.gguf
  lutra-lab bench engine --shape falcon3-1b --threads 2 --tests pp512,tg64,par32 --json
  lutra-lab bench engine --model m.gguf --tests pp512,tg64 --compare 'llama.cpp=llama-bench -m m.gguf -p 512 -n 64 -r 1 -o jsonl'
  lutra-lab bench engine --model m.gguf --tests tg64,par32 --profile
  lutra-lab bench engine --model m.gguf --tests par32,st32 --schema schema.json`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			o.Get, o.Loading = cli.FromHub(cmd), shown.Show
			r, err := bench.Engine(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	sourceFlags(f, &o.Source)
	f.IntVar(&o.Threads, "threads", 0, "compute threads (default: one a physical core)")
	f.IntVarP(&o.Reps, "reps", "r", o.Reps, "repetitions a test, after one that is not counted; with --compare, rounds")
	f.StringSliceVar(&o.Tests, "tests", o.Tests, "tests to run")
	f.IntVar(&o.ParTokens, "par-tokens", o.ParTokens, "tokens a sequence of par<N>, st<N>, dt<N> and mtp<N>")
	f.StringVar(&o.Schema, "schema", "", "JSON Schema in a `FILE` that st<N> is held to; an answer that ends is followed by another")
	f.StringVar(&o.Vocabulary, "vocabulary", "", "GGUF `FILE` or a model's name whose tokens st<N> is held with (default: the model's own)")
	f.StringVar(&o.Draft, "draft-model", "", "GGUF `FILE` or an embedded model's name: drafts in the tests with speculation")
	f.StringVar(&o.Speculation, "speculation", o.Speculation, "speculation in sp<N>, cp<N>, dr<N> and mtp<N>: auto or a number")
	f.Float64Var(&o.Acceptance, "acceptance", o.Acceptance, "the part of guesses in mtp<N> that are right; the layer computes them all the same")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&o.Profile, "profile", false, "print the time of each kind of kernel")
	f.StringVar(&o.CPUProfile, "cpuprofile", "", "write a profile of the runs to `FILE`, for go tool pprof")
	compareFlags(f, &o.PeerOptions)
	cmd.MarkFlagsMutuallyExclusive("profile", "compare")
	return cmd
}
