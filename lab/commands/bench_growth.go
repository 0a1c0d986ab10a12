package commands

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/lab/bench"
)

func newBenchGrowth() *cobra.Command {
	o, asJSON := bench.DefaultGrowthOptions(), false
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "Measure how costs grow with the batch, the context and the threads",
		Long: `Decodes in more and more sequences at once, after longer and longer contexts, and
with more and more threads; each figure is the best of --reps runs. Remarks mark the
points where costs grow badly: more sequences or threads decode fewer tokens a second,
or a token's cost grows faster than linearly with the context.`,
		Example: `  lutra-lab bench growth
  lutra-lab bench growth --shape falcon3-1b --batches 1,8,32 --contexts 128,512,2048 --svg growth.svg`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			o.Get, o.Loading = cli.FromHub(cmd), shown.Show
			r, err := bench.Growth(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	sourceFlags(f, &o.Source)
	f.IntSliceVar(&o.Batches, "batches", o.Batches, "sequences at once, ascending")
	f.IntSliceVar(&o.Contexts, "contexts", o.Contexts, "tokens before the decoded ones, ascending; longer than the model's context are left out")
	f.IntSliceVar(&o.Threads, "threads", nil, "threads, ascending (default: 1 to all physical cores); batch and context use the last number")
	f.IntVar(&o.Decode, "decode", o.Decode, "tokens to decode a sequence")
	f.IntVarP(&o.Reps, "reps", "r", o.Reps, "runs a point, of which the best counts")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.StringVar(&o.SVG, "svg", "", "draw the curves into `FILE` too")
	return cmd
}
