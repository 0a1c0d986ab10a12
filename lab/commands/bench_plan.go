package commands

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/lab/bench"
)

func newBenchPlan() *cobra.Command {
	o, asJSON := bench.DefaultPlanOptions(), false
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Size a fleet: how many machines like this one answer so many requests in time",
		Long: `Measures what a step of the engine costs on this machine with 1 to --streams streams,
and models from that one replica after the other: how many requests a second it
answers with 95 of 100 within --p95, how many replicas the --rate wants, how these
will do, and what they cost. Requests come at random, independent of each other; all
have --prompt tokens that no cache holds and --output tokens.

What is modelled is labelled so. It knows nothing of networks, of templates and
tokenizers, nor of answers that end early.`,
		Example: `  lutra-lab bench plan --rate 5 --prompt 200 --output 100 --p95 5s
  lutra-lab bench plan --model model.gguf --rate 0.2 --prompt 300 --output 150 --n 16 --p95 60s --price 0.14`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			o.Get, o.Loading = cli.FromHub(cmd), shown.Show
			r, err := bench.Plan(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	sourceFlags(f, &o.Source)
	f.Float64Var(&o.Rate, "rate", o.Rate, "requests a second, of all clients together")
	f.IntVar(&o.Prompt, "prompt", o.Prompt, "tokens of a prompt, without those that a cache holds")
	f.IntVar(&o.Output, "output", o.Output, "tokens of an answer")
	f.IntVar(&o.N, "n", o.N, "candidates a request, which share its prompt")
	f.DurationVar(&o.P95, "p95", o.P95, "what 95 of 100 requests may take at most, from the question to the last token")
	f.Float64Var(&o.Price, "price", 0, "price of a machine an hour, in any currency")
	f.IntVar(&o.Streams, "streams", o.Streams, "sequences that one replica decodes at once; more requests wait")
	f.IntVar(&o.Threads, "threads", 0, "compute threads (default: one a physical core)")
	f.IntVarP(&o.Reps, "reps", "r", o.Reps, "runs a point, of which the best counts")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
